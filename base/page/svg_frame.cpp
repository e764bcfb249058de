#include "base/page/svg_frame.h"

#include <fmt/format.h>

#include <cmath>

#include "base/page/html.h"
#include "base/page/ticks.h"

namespace troupe::base {

namespace {

// Units of the viewBox. The margins hold the texts at the size that narrow screens get.
constexpr double kWidth = 640, kHeight = 300, kLeft = 92, kRight = 16, kTop = 12, kBottom = 56;
constexpr double kAreaWidth = kWidth - kLeft - kRight, kAreaHeight = kHeight - kTop - kBottom;
constexpr int kXTicks = 4, kYTicks = 5;

double step_of(const std::vector<double>& ticks) { return ticks.size() < 2 ? 1 : ticks[1] - ticks[0]; }

}  // namespace

void SvgFrame::settle() {
  if (!(x_high > x_low)) {
    x_low -= 0.5;
    x_high += 0.5;
  }
  double room = 0.05 * (y_high - y_low);
  if (!(room > 0)) room = std::max(1e-9, 0.1 * std::abs(y_low));
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
  for (const double value : ys) {
    out += fmt::format(
        "<path class=\"grid\" d=\"M{:.1f} {:.1f}h{}\"/><text x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>",
        kLeft, y(value), kAreaWidth, kLeft - 7, y(value) + 5, tick_text(value, step_of(ys)));
  }
  out += "</g>\n<g>";
  const auto xs = linear_ticks(x_low, x_high, kXTicks);
  for (const double value : xs) {
    out +=
        fmt::format("<path class=\"axis\" d=\"M{:.1f} {}v5\"/><text x=\"{:.1f}\" y=\"{}\" text-anchor=\"{}\">{}</text>",
                    x(value), kTop + kAreaHeight, x(value), kTop + kAreaHeight + 24,
                    x(value) > kWidth - 3 * kRight ? "end" : "middle", tick_text(value, step_of(xs)));
  }
  out +=
      fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text><path class=\"axis\" d=\"M{} {}v{}h{}\"/>",
                  kLeft + kAreaWidth / 2, kHeight - 8, escape_html(x_title), kLeft, kTop, kAreaHeight, kAreaWidth);
  return out + "</g>\n";
}

}  // namespace troupe::base
