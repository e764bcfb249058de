#include "base/page/svg_frame.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "base/page/html.h"
#include "base/page/ticks.h"

namespace troupe::base {

namespace {

// Units of the viewBox. The margins hold the texts at the size that narrow screens get.
constexpr double kWidth = 640, kHeight = 300, kLeft = 106, kRight = 16, kTop = 12, kBottom = 56;
constexpr double kAreaWidth = kWidth - kLeft - kRight, kAreaHeight = kHeight - kTop - kBottom;
constexpr int kXTicks = 4, kYTicks = 5;

}  // namespace

void SvgFrame::settle() {
  if (!(x_high > x_low)) {
    x_low -= 0.5;
    x_high += 0.5;
  }
  const double height = y_high - y_low, size = std::max(std::abs(y_low), std::abs(y_high));
  double room = std::max(0.05 * height, 0.5 * (least_span(size) - height));
  if (height == 0) room = size == 0 ? 1 : 0.1 * size;
  y_low -= room;
  y_high += room;
}

double SvgFrame::x(double value) const { return kLeft + (value - x_low) / (x_high - x_low) * kAreaWidth; }
double SvgFrame::y(double value) const { return kTop + (y_high - value) / (y_high - y_low) * kAreaHeight; }

std::string SvgFrame::attributes() const {
  return fmt::format(
      "viewBox=\"0 0 {} {}\" data-area=\"{} {} {} {}\" data-x=\"{:.9g} {:.9g}\" data-y=\"{:.9g} {:.9g}\"", kWidth,
      kHeight, kLeft, kTop, kAreaWidth, kAreaHeight, x_low, x_high, y_low, y_high);
}

std::string SvgFrame::axes(const std::string& x_title) const {
  std::string out = "<g class=\"y-ticks\">";
  const auto ys = linear_ticks(y_low, y_high, kYTicks);
  const auto y_texts = tick_texts(ys);
  for (std::size_t i = 0; i < ys.size(); ++i) {
    out += fmt::format(
        "<path class=\"grid\" d=\"M{:.1f} {:.1f}h{}\"/><text x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>",
        kLeft, y(ys[i]), kAreaWidth, kLeft - 7, y(ys[i]) + 5, y_texts[i]);
  }
  out += "</g>\n<g>";
  const auto xs = linear_ticks(x_low, x_high, kXTicks, has_whole_x ? 1 : 0);
  const auto x_texts = tick_texts(xs);
  for (std::size_t i = 0; i < xs.size(); ++i) {
    out +=
        fmt::format("<path class=\"axis\" d=\"M{:.1f} {}v5\"/><text x=\"{:.1f}\" y=\"{}\" text-anchor=\"{}\">{}</text>",
                    x(xs[i]), kTop + kAreaHeight, x(xs[i]), kTop + kAreaHeight + 24,
                    x(xs[i]) > kWidth - 3 * kRight ? "end" : "middle", x_texts[i]);
  }
  out +=
      fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text><path class=\"axis\" d=\"M{} {}v{}h{}\"/>",
                  kLeft + kAreaWidth / 2, kHeight - 8, escape_html(x_title), kLeft, kTop, kAreaHeight, kAreaWidth);
  return out + "</g>\n";
}

}  // namespace troupe::base
