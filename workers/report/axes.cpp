#include "workers/report/axes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "placement/format.h"

namespace troupe::workers {

namespace {

constexpr InkColor kGrid{0.90, 0.90, 0.91}, kAxis{0.55, 0.55, 0.58}, kMuted{0.38, 0.38, 0.42};

double round_step(double span, int target) {
  const double raw = span / std::max(1, target), power = std::pow(10.0, std::floor(std::log10(raw))),
               share = raw / power;
  return power * (share <= 1.0 ? 1 : share <= 2.0 ? 2 : share <= 5.0 ? 5 : 10);
}

}  // namespace

std::vector<double> linear_ticks(double low, double high, int target) {
  if (!(high > low)) return {low};
  const double step = round_step(high - low, target);
  std::vector<double> ticks;
  // counted in whole steps, so that the ticks carry no summed rounding
  const auto last = static_cast<long long>(std::floor(high / step + 1e-9));
  for (auto i = static_cast<long long>(std::ceil(low / step - 1e-9)); i <= last; ++i)
    ticks.push_back(static_cast<double>(i) * step);
  return ticks;
}

std::vector<double> log_ticks(double low, double high) {
  const auto collect = [&](const std::vector<double>& multiples) {
    std::vector<double> ticks;
    for (int decade = static_cast<int>(std::floor(std::log10(low)));
         decade <= static_cast<int>(std::ceil(std::log10(high))); ++decade) {
      for (const double m : multiples) {
        const double value = m * std::pow(10.0, decade);
        if (value >= low * (1 - 1e-9) && value <= high * (1 + 1e-9)) ticks.push_back(value);
      }
    }
    return ticks;
  };
  auto ticks = collect({1});
  if (ticks.size() < 4) ticks = collect({1, 2, 5});
  if (ticks.size() < 2) ticks = linear_ticks(low, high, 4);
  return ticks;
}

std::string tick_text(double value, double step) {
  if (value == 0) return "0";
  const double size = std::abs(value);
  if (size < 1e-4 || size >= 1e7) return fmt::format("{:.1e}", value);
  const int decimals = std::clamp(static_cast<int>(std::ceil(-std::log10(step) - 1e-9)), 0, 6);
  if (decimals > 0) return fmt::format("{:.{}f}", value, decimals);
  return format_grouped(static_cast<std::int64_t>(std::nearbyint(value)));
}

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
  const double room = 0.05 * (y_high - y_low);
  y_low -= room;
  y_high += room;
}

ChartPoint Axes::at(double x, double y) const {
  const double along = (x - x_low) / (x_high - x_low);
  const double up = log_y ? std::log(y / y_low) / std::log(y_high / y_low) : (y - y_low) / (y_high - y_low);
  return {area.x + along * area.width, area.bottom() - up * area.height};
}

void Axes::draw(Chart& chart, const std::string& x_title, const std::string& y_title, double text_size, int x_ticks,
                int y_ticks) const {
  TextInk ink{.size = text_size, .color = kMuted, .align = TextAlign::right};
  const auto y_values = log_y ? log_ticks(y_low, y_high) : linear_ticks(y_low, y_high, y_ticks);
  double widest = 0;
  for (const double value : y_values) {
    const double step = log_y || y_values.size() < 2 ? std::abs(value) : y_values[1] - y_values[0],
                 y = at(x_low, value).y;
    chart.line({area.x, y}, {area.right(), y}, {.color = kGrid});
    const std::string text = tick_text(value, step);
    chart.text({area.x - 6, y + 0.35 * text_size}, text, ink);
    widest = std::max(widest, chart.text_width(text, ink));
  }
  ink.align = TextAlign::centre;
  const auto x_values = linear_ticks(x_low, x_high, x_ticks);
  for (const double value : x_values) {
    const double step = x_values.size() < 2 ? 1 : x_values[1] - x_values[0], x = at(value, y_low).x;
    chart.line({x, area.bottom()}, {x, area.bottom() + 4}, {.color = kAxis});
    chart.text({x, area.bottom() + 6 + text_size}, tick_text(value, step), ink);
  }
  chart.line({area.x, area.bottom()}, {area.right(), area.bottom()}, {.color = kAxis});
  chart.line({area.x, area.y}, {area.x, area.bottom()}, {.color = kAxis});
  if (!x_title.empty()) chart.text({area.x + area.width / 2, area.bottom() + 12 + 2.2 * text_size}, x_title, ink);
  ink.upright = true;
  if (!y_title.empty()) chart.text({area.x - 16 - widest, area.y + area.height / 2}, y_title, ink);
}

}  // namespace troupe::workers
