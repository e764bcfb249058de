#include "data/health/html.h"

#include <fmt/format.h>

#include <algorithm>

namespace troupe::data {

namespace {

/// Length of the UTF-8 sequence that begins at text[i], or 0 when none does.
std::size_t utf8_length(std::string_view text, std::size_t i) {
  const auto byte = [&](std::size_t k) { return static_cast<unsigned char>(text[k]); };
  const unsigned char lead = byte(i);
  if (lead < 0x80) return 1;
  const std::size_t n = lead >= 0xC2 && lead < 0xE0   ? 2
                        : lead >= 0xE0 && lead < 0xF0 ? 3
                        : lead >= 0xF0 && lead < 0xF5 ? 4
                                                      : 0;
  if (n == 0 || i + n > text.size()) return 0;
  for (std::size_t k = 1; k < n; ++k) {
    if ((byte(i + k) & 0xC0) != 0x80) return 0;
  }
  // Overlong forms, surrogates, beyond U+10FFFF.
  const unsigned char second = byte(i + 1);
  if ((lead == 0xE0 && second < 0xA0) || (lead == 0xED && second > 0x9F) || (lead == 0xF0 && second < 0x90) ||
      (lead == 0xF4 && second > 0x8F)) {
    return 0;
  }
  return n;
}

}  // namespace

std::string escape_html(std::string_view text) {
  std::string out;
  out.reserve(text.size() + 16);
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t n = utf8_length(text, i);
    if (n != 1) {
      out += n == 0 ? "\xEF\xBF\xBD" : text.substr(i, n);
      i += std::max<std::size_t>(n, 1);
      continue;
    }
    switch (const char c = text[i++]) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += static_cast<unsigned char>(c) < 0x20 || c == 0x7F ? ' ' : c;
    }
  }
  return out;
}

Histogram histogram_of(std::span<const double> values) {
  Histogram out;
  if (values.empty()) return out;
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  out.low = *low;
  out.high = *high;
  const std::size_t bins = out.high > out.low ? std::min<std::size_t>(40, std::max<std::size_t>(values.size(), 2)) : 1;
  out.counts.resize(bins);
  for (double v : values) {
    const double at = out.high > out.low ? (v - out.low) / (out.high - out.low) * static_cast<double>(bins) : 0;
    ++out.counts[std::min(bins - 1, static_cast<std::size_t>(at))];
  }
  return out;
}

std::string svg_histogram(const Histogram& h, std::string_view title) {
  constexpr double kWidth = 180, kHeight = 56, kBars = 40;
  const std::int64_t most = h.counts.empty() ? 0 : *std::max_element(h.counts.begin(), h.counts.end());
  std::string bars;
  const double step = h.counts.empty() ? 0 : kWidth / static_cast<double>(h.counts.size());
  for (std::size_t i = 0; i < h.counts.size(); ++i) {
    if (h.counts[i] == 0) continue;
    // A bar of one value in a million is still seen.
    const double height = std::max(1.0, kBars * static_cast<double>(h.counts[i]) / static_cast<double>(most));
    bars += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\"/>",
                        static_cast<double>(i) * step, kBars - height, std::max(0.5, step - 0.5), height);
  }
  return fmt::format(
      "<svg class=\"h\" viewBox=\"0 0 {} {}\" role=\"img\"><title>{}</title><g>{}</g><line x1=\"0\" y1=\"{}\" "
      "x2=\"{}\" "
      "y2=\"{}\"/><text x=\"0\" y=\"53\">{:.4g}</text><text x=\"{}\" y=\"53\" text-anchor=\"end\">{:.4g}</text></svg>",
      kWidth, kHeight, escape_html(title), bars, kBars, kWidth, kBars, h.low, kWidth, h.high);
}

}  // namespace troupe::data
