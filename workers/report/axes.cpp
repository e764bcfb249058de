#include "workers/report/axes.h"

#include <algorithm>
#include <cmath>

namespace troupe::workers {

namespace {

constexpr InkColor kGrid{0.90, 0.90, 0.91}, kAxis{0.55, 0.55, 0.58}, kMuted{0.38, 0.38, 0.42};

constexpr double kLabelGap = 10;

std::vector<double> y_values(const Axes& axes, int y_ticks) {
  return axes.log_y ? log_ticks(axes.y_low, axes.y_high) : linear_ticks(axes.y_low, axes.y_high, y_ticks);
}

/// A tick of the x axis and its label.
struct Tick {
  double x = 0;
  std::string label;
};

std::vector<Tick> x_ticks_of(const Axes& axes, int x_ticks) {
  const auto values = linear_ticks(axes.x_low, axes.x_high, x_ticks, /*least_step=*/1);
  const auto texts = tick_texts(values);
  std::vector<Tick> ticks;
  for (std::size_t i = 0; i < values.size(); ++i) ticks.push_back({axes.at(values[i], axes.y_low).x, texts[i]});
  return ticks;
}

bool labels_touch(const Chart& chart, const std::vector<Tick>& ticks, const TextInk& ink) {
  for (std::size_t i = 1; i < ticks.size(); ++i) {
    const double room = ticks[i].x - ticks[i - 1].x;
    if ((chart.text_width(ticks[i].label, ink) + chart.text_width(ticks[i - 1].label, ink)) / 2 + kLabelGap > room)
      return true;
  }
  return false;
}

}  // namespace

void Axes::settle() {
  if (!(x_high > x_low)) {
    x_low -= 0.5;
    x_high += 0.5;
  }
  if (log_y) {
    const double room = std::pow(std::max(y_high / y_low, 1.1), 0.05);
    y_low /= room;
    y_high *= room;
    return;
  }
  if (!(y_high > y_low)) {
    const double room = std::max(0.5, 0.1 * std::abs(y_low));
    y_low -= room;
    y_high += room;
  }
  const double height = y_high - y_low, size = std::max(std::abs(y_low), std::abs(y_high));
  const double room = std::max(0.05 * height, 0.5 * (least_span(size) - height));
  y_low -= room;
  y_high += room;
}

ChartPoint Axes::at(double x, double y) const {
  const double along = (x - x_low) / (x_high - x_low);
  const double up = log_y ? std::log(y / y_low) / std::log(y_high / y_low) : (y - y_low) / (y_high - y_low);
  return {area.x + along * area.width, area.bottom() - up * area.height};
}

double Axes::label_width(const Chart& chart, double text_size, int y_ticks) const {
  double widest = 0;
  for (const std::string& text : tick_texts(y_values(*this, y_ticks)))
    widest = std::max(widest, chart.text_width(text, {.size = text_size}));
  return widest;
}

void Axes::draw(Chart& chart, const std::string& x_title, const std::string& y_title, double text_size, int x_ticks,
                int y_ticks) const {
  TextInk ink{.size = text_size, .color = kMuted, .align = TextAlign::right};
  const auto values = y_values(*this, y_ticks);
  const auto texts = tick_texts(values);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double y = at(x_low, values[i]).y;
    chart.line({area.x, y}, {area.right(), y}, {.color = kGrid});
    chart.text({area.x - 6, y + 0.35 * text_size}, texts[i], ink);
  }
  ink.align = TextAlign::centre;
  std::vector<Tick> ticks = x_ticks_of(*this, x_ticks);
  while (x_ticks > 1 && labels_touch(chart, ticks, ink)) ticks = x_ticks_of(*this, --x_ticks);
  for (const Tick& tick : ticks) {
    chart.line({tick.x, area.bottom()}, {tick.x, area.bottom() + 4}, {.color = kAxis});
    chart.text({tick.x, area.bottom() + 6 + text_size}, tick.label, ink);
  }
  chart.line({area.x, area.bottom()}, {area.right(), area.bottom()}, {.color = kAxis});
  chart.line({area.x, area.y}, {area.x, area.bottom()}, {.color = kAxis});
  if (!x_title.empty())
    chart.fitted_text({area.x + area.width / 2, area.bottom() + 12 + 2.2 * text_size}, x_title, ink, area.width);
  ink.upright = true;
  if (!y_title.empty())
    chart.fitted_text({area.x - 16 - label_width(chart, text_size, y_ticks), area.y + area.height / 2}, y_title, ink,
                      area.height);
}

}  // namespace troupe::workers
