#include "data/health/html.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/page/html.h"

namespace troupe::data {

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
