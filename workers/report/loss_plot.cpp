#include "workers/report/loss_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "workers/report/axes.h"

namespace troupe::workers {

namespace {

InkColor color_of(LossRole role) {
  switch (role) {
    case LossRole::train:
      return {0.10, 0.28, 0.58};
    case LossRole::dynamics:
      return {0.09, 0.56, 0.50};
    case LossRole::action:
      return {0.86, 0.47, 0.10};
    case LossRole::held_out:
      return {0.70, 0.13, 0.36};
  }
  return {};
}

bool drawable(const LossPoint& p, bool log_scale) { return std::isfinite(p.value) && (!log_scale || p.value > 0); }

std::optional<Axes> ranges_of(const std::vector<LossSeries>& series, bool log_scale) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  Axes axes{.x_low = kInfinity, .x_high = -kInfinity, .y_low = kInfinity, .y_high = -kInfinity, .log_y = log_scale};
  for (const LossSeries& s : series) {
    for (const LossPoint& p : s.points) {
      if (!drawable(p, log_scale)) continue;
      axes.x_low = std::min(axes.x_low, static_cast<double>(p.step));
      axes.x_high = std::max(axes.x_high, static_cast<double>(p.step));
      axes.y_low = std::min(axes.y_low, p.value);
      axes.y_high = std::max(axes.y_high, p.value);
    }
  }
  if (!(axes.x_low <= axes.x_high)) return std::nullopt;
  // a linear loss axis starts at zero: what is left to lose is then seen
  if (!log_scale && axes.y_low > 0) axes.y_low = 0;
  axes.settle();
  if (!log_scale && axes.y_low > -0.2 * axes.y_high) axes.y_low = std::max(axes.y_low, 0.0);
  return axes;
}

/// Stretches of drawable points; a gap interrupts the line instead of being bridged.
std::vector<std::vector<LossPoint>> stretches(const std::vector<LossPoint>& points, bool log_scale) {
  std::vector<std::vector<LossPoint>> parts(1);
  for (const LossPoint& p : points) {
    if (drawable(p, log_scale))
      parts.back().push_back(p);
    else if (!parts.back().empty())
      parts.emplace_back();
  }
  if (parts.back().empty()) parts.pop_back();
  return parts;
}

void draw_line(Chart& chart, const Axes& axes, const std::vector<LossPoint>& points, const LineInk& ink) {
  std::vector<ChartPoint> path;
  for (const LossPoint& p : points) path.push_back(axes.at(static_cast<double>(p.step), p.value));
  chart.polyline(path, ink);
  if (path.size() == 1) chart.disc(path[0], 1.5 * ink.width, ink.color);
}

void draw_series(Chart& chart, const Axes& axes, const LossSeries& series, const LossPlotOptions& options) {
  const InkColor color = color_of(series.role);
  for (const auto& part : stretches(series.points, options.log_scale)) {
    if (series.role == LossRole::held_out) {
      draw_line(chart, axes, part, {.width = 1.5, .color = color, .dashed = true});
      for (const LossPoint& p : part) chart.disc(axes.at(static_cast<double>(p.step), p.value), 4, color);
      continue;
    }
    const auto window = static_cast<std::int64_t>(std::round(options.smoothing * static_cast<double>(part.size())));
    if (window >= 2) draw_line(chart, axes, part, {.width = 1, .color = color.faded(0.28)});
    draw_line(chart, axes, window >= 2 ? running_mean(part, window) : part, {.width = 2.2, .color = color});
  }
}

void draw_legend(Chart& chart, const Axes& axes, const std::vector<LossSeries>& series, bool log_scale) {
  double y = axes.area.y + 22;
  for (const LossSeries& s : series) {
    std::int64_t left_out = 0;
    const LossPoint* last = nullptr;
    for (const LossPoint& p : s.points) {
      if (drawable(p, log_scale))
        last = &p;
      else
        ++left_out;
    }
    if (last == nullptr) continue;
    std::string text = fmt::format("{}  {:.4g}", s.name, last->value);
    if (left_out > 0) text += fmt::format("  ({} not drawable)", left_out);
    const TextInk ink{.size = 14, .align = TextAlign::right};
    const double right = axes.area.right() - 14, width = chart.text_width(text, ink);
    chart.fill({right - width - 48, y - 15, width + 56, 21}, {1, 1, 1, 0.85});
    chart.line({right - width - 40, y - 5}, {right - width - 10, y - 5},
               {.width = 2.5, .color = color_of(s.role), .dashed = s.role == LossRole::held_out});
    if (s.role == LossRole::held_out) chart.disc({right - width - 25, y - 5}, 4, color_of(s.role));
    chart.text({right, y}, text, ink);
    y += 22;
  }
}

}  // namespace

std::vector<LossPoint> running_mean(const std::vector<LossPoint>& points, std::int64_t window) {
  const auto count = static_cast<std::int64_t>(points.size()), half = window / 2;
  std::vector<double> sums(points.size() + 1);
  for (std::size_t i = 0; i < points.size(); ++i) sums[i + 1] = sums[i] + points[i].value;
  std::vector<LossPoint> smooth = points;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t reach = std::min({half, i, count - 1 - i});  // even on both sides, so that a slope stays a slope
    const auto from = static_cast<std::size_t>(i - reach), to = static_cast<std::size_t>(i + reach + 1);
    smooth[static_cast<std::size_t>(i)].value = (sums[to] - sums[from]) / static_cast<double>(to - from);
  }
  return smooth;
}

Result<void> draw_loss_curves(const std::string& path, const std::vector<LossSeries>& series,
                              const LossPlotOptions& options) {
  if (options.width < 320 || options.height < 240 || options.width > 16'384 || options.height > 16'384) {
    return Error{Errc::invalid_argument, fmt::format("{}: a plot of {}x{} pixels; wanted 320x240 to 16384x16384", path,
                                                     options.width, options.height)};
  }
  auto axes = ranges_of(series, options.log_scale);
  if (!axes) return Error{Errc::invalid_argument, fmt::format("{}: no loss value can be drawn", path)};
  const auto width = static_cast<double>(options.width), height = static_cast<double>(options.height);
  axes->area = {92, 58, width - 92 - 28, height - 58 - 64};
  Chart chart(options.width, options.height);
  chart.text({24, 34}, options.title, {.size = 19, .bold = true});
  axes->draw(chart, options.x_title, options.log_scale ? options.y_title + " (log scale)" : options.y_title, 13, 10, 8);
  chart.clip({axes->area.x, axes->area.y - 6, axes->area.width + 8, axes->area.height + 12});
  for (const LossSeries& s : series) draw_series(chart, *axes, s, options);
  chart.unclip();
  draw_legend(chart, *axes, series, options.log_scale);
  return chart.save(path);
}

}  // namespace troupe::workers
