#include "workers/report/loss_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <optional>

#include "workers/report/axes.h"

namespace troupe::workers {

namespace {

/// Colour-blind safe, as those of the pages.
constexpr InkColor kGroupColors[] = {{0.10, 0.28, 0.58}, {0.86, 0.47, 0.10}, {0.09, 0.56, 0.50}, {0.70, 0.13, 0.36},
                                     {0.42, 0.32, 0.66}, {0.55, 0.45, 0.10}, {0.20, 0.60, 0.86}, {0.35, 0.35, 0.38}};

InkColor color_of(const LossSeries& series) {
  switch (series.role) {
    case LossRole::train:
      return {0.10, 0.28, 0.58};
    case LossRole::dynamics:
      return {0.09, 0.56, 0.50};
    case LossRole::action:
      return {0.86, 0.47, 0.10};
    case LossRole::held_out:
      return {0.70, 0.13, 0.36};
    case LossRole::group:
      return kGroupColors[series.group % std::size(kGroupColors)];
  }
  return {};
}

/// Held-out losses, and the groups that repeat a colour.
bool is_dashed(const LossSeries& series) {
  if (series.role == LossRole::group) return series.group >= std::size(kGroupColors);
  return series.role == LossRole::held_out;
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
    for (const LossBand& b : s.band) {
      if (std::isfinite(b.low) && (!log_scale || b.low > 0)) axes.y_low = std::min(axes.y_low, b.low);
      if (std::isfinite(b.high)) axes.y_high = std::max(axes.y_high, b.high);
    }
  }
  if (!(axes.x_low <= axes.x_high)) return std::nullopt;
  const bool has_negative = axes.y_low < 0;
  // a linear axis of losses starts at zero: what is left to lose is then seen
  if (!log_scale && !has_negative) axes.y_low = 0;
  axes.settle();
  if (!log_scale && !has_negative) axes.y_low = 0;
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

void draw_band(Chart& chart, const Axes& axes, const LossSeries& series) {
  std::vector<ChartPoint> edge, lower;
  for (std::size_t i = 0; i < series.band.size(); ++i) {
    const LossBand& bounds = series.band[i];
    if (!std::isfinite(bounds.low) || !std::isfinite(bounds.high)) continue;
    const auto step = static_cast<double>(series.points[i].step);
    edge.push_back(axes.at(step, bounds.high));
    lower.push_back(axes.at(step, axes.log_y ? std::max(bounds.low, axes.y_low) : bounds.low));
  }
  edge.insert(edge.end(), lower.rbegin(), lower.rend());
  if (edge.size() > 2) chart.polygon(edge, color_of(series).faded(0.22));
}

void draw_series(Chart& chart, const Axes& axes, const LossSeries& series, const LossPlotOptions& options) {
  const InkColor color = color_of(series);
  for (const auto& part : stretches(series.points, options.log_scale)) {
    if (series.role == LossRole::held_out) {
      draw_line(chart, axes, part, {.width = 1.5, .color = color, .dashed = true});
      for (const LossPoint& p : part) chart.disc(axes.at(static_cast<double>(p.step), p.value), 4, color);
      continue;
    }
    if (series.role == LossRole::group) {
      draw_line(chart, axes, part, {.width = 2.2, .color = color, .dashed = is_dashed(series)});
      continue;
    }
    const auto window = static_cast<std::int64_t>(std::round(options.smoothing * static_cast<double>(part.size())));
    const auto smooth = running_mean(part, window);
    if (window >= 2) draw_line(chart, axes, part, {.width = 1, .color = color.faded(0.28)});
    draw_line(chart, axes, smooth.empty() ? part : smooth, {.width = 2.2, .color = color});
  }
}

/// One curve's sample of its line, name and last value, in a row above the curves.
struct LegendEntry {
  std::string text;
  const LossSeries* series = nullptr;
  /// Of the sample's left end and the text's baseline.
  ChartPoint place;
};

constexpr double kLeastCurves = 0.5;  // of the height that is asked for
constexpr double kSample = 30, kSampleGap = 10, kEntryGap = 28, kLegendRow = 22;
constexpr TextInk kLegendInk{.size = 14};

/// From left to right, further rows where one is full. `bottom` is set below the last row.
std::vector<LegendEntry> lay_out_legend(const Chart& chart, const std::vector<LossSeries>& series, bool log_scale,
                                        ChartRect room, double& bottom) {
  std::vector<LegendEntry> entries;
  ChartPoint next{room.x, room.y};
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
    const double width = kSample + kSampleGap + chart.text_width(text, kLegendInk);
    if (next.x > room.x && next.x + width > room.right()) next = {room.x, next.y + kLegendRow};
    entries.push_back({.text = std::move(text), .series = &s, .place = next});
    next.x += width + kEntryGap;
  }
  bottom = next.y + kLegendRow;
  return entries;
}

void draw_legend(Chart& chart, const std::vector<LegendEntry>& entries, double width) {
  for (const LegendEntry& e : entries) {
    const double y = e.place.y - 5;
    chart.line({e.place.x, y}, {e.place.x + kSample, y},
               {.width = 2.5, .color = color_of(*e.series), .dashed = is_dashed(*e.series)});
    if (e.series->role == LossRole::held_out) chart.disc({e.place.x + kSample / 2, y}, 4, color_of(*e.series));
    const double text_x = e.place.x + kSample + kSampleGap;
    chart.fitted_text({text_x, e.place.y}, e.text, kLegendInk, width - text_x);
  }
}

}  // namespace

bool wants_log_scale(const std::vector<LossSeries>& series) {
  double least = std::numeric_limits<double>::infinity(), greatest = -least;
  for (const LossSeries& s : series) {
    for (const LossPoint& p : s.points) {
      if (!std::isfinite(p.value)) continue;
      least = std::min(least, p.value);
      greatest = std::max(greatest, p.value);
    }
  }
  return least > 0 && greatest > 1e4 * least;
}

std::vector<LossPoint> running_mean(const std::vector<LossPoint>& points, std::int64_t window) {
  const auto count = static_cast<std::int64_t>(points.size()), half = window / 2;
  if (window < 2 || count <= 2 * half) return {};
  std::vector<double> sums(points.size() + 1);
  for (std::size_t i = 0; i < points.size(); ++i) sums[i + 1] = sums[i] + points[i].value;
  std::vector<LossPoint> smooth;
  for (std::int64_t i = half; i < count - half; ++i) {
    const auto from = static_cast<std::size_t>(i - half), to = static_cast<std::size_t>(i + half + 1);
    smooth.push_back({.step = points[static_cast<std::size_t>(i)].step,
                      .value = (sums[to] - sums[from]) / static_cast<double>(to - from)});
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
  constexpr double kMargin = 24, kRight = 52, kBottom = 64, kTextSize = 13;
  constexpr int kTicksX = 10, kTicksY = 8;
  const Chart ruler(1, 1);
  const double left = kMargin + kTextSize + 16 + axes->label_width(ruler, kTextSize, kTicksY);
  double top = 0;
  const auto legend = lay_out_legend(ruler, series, options.log_scale, {left, 62, width - left - kRight, 0}, top);
  // a long legend makes the sheet higher, so that the curves keep their room
  axes->area = {left, top, width - left - kRight, std::max(height - top - kBottom, kLeastCurves * height)};
  Chart chart(options.width, static_cast<std::int64_t>(std::round(axes->area.bottom() + kBottom)));
  chart.fitted_text({kMargin, 34}, options.title, {.size = 19, .bold = true}, width - 2 * kMargin);
  draw_legend(chart, legend, width - kMargin);
  axes->draw(chart, options.x_title, options.log_scale ? options.y_title + " (log scale)" : options.y_title, kTextSize,
             kTicksX, kTicksY);
  chart.clip({axes->area.x, axes->area.y - 6, axes->area.width + 8, axes->area.height + 12});
  for (const LossSeries& s : series) draw_band(chart, *axes, s);
  for (const LossSeries& s : series) draw_series(chart, *axes, s, options);
  chart.unclip();
  return chart.save(path);
}

}  // namespace troupe::workers
