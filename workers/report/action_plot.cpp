#include "workers/report/action_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "workers/report/axes.h"

namespace troupe::workers {

namespace {

constexpr std::size_t kMostDimensions = 64, kMostWindows = 8;
constexpr double kPanelWidth = 380, kPanelHeight = 150, kLeft = 110, kTop = 96, kGap = 58, kBottom = 64;
constexpr InkColor kRecorded{0.20, 0.20, 0.24}, kPredicted{0.86, 0.36, 0.10}, kMark{0.72, 0.76, 0.84};

std::size_t steps_of(const ActionPlot& plot, const ActionPlotWindow& window) {
  return window.recorded.size() / plot.names.size();
}

Result<void> check(const std::string& path, const ActionPlot& plot) {
  const auto refuse = [&](const std::string& why) { return Error{Errc::invalid_argument, path + ": " + why}; };
  if (plot.names.empty() || plot.windows.empty()) return refuse("a plot without dimensions or windows");
  if (plot.names.size() > kMostDimensions || plot.windows.size() > kMostWindows) {
    return refuse(fmt::format("{} dimensions and {} windows; at most {} and {} are drawn", plot.names.size(),
                              plot.windows.size(), kMostDimensions, kMostWindows));
  }
  for (const ActionPlotWindow& w : plot.windows) {
    if (w.recorded.size() == w.predicted.size() && !w.recorded.empty() && w.recorded.size() % plot.names.size() == 0)
      continue;
    return refuse(fmt::format("window '{}' has {} recorded and {} predicted values of {} dimensions", w.title,
                              w.recorded.size(), w.predicted.size(), plot.names.size()));
  }
  return {};
}

/// The range of one dimension over all windows.
Axes range_of(const ActionPlot& plot, std::size_t dimension) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  Axes axes{.y_low = kInfinity, .y_high = -kInfinity};
  for (const ActionPlotWindow& w : plot.windows) {
    for (const auto* values : {&w.recorded, &w.predicted}) {
      for (std::size_t i = dimension; i < values->size(); i += plot.names.size()) {
        if (!std::isfinite((*values)[i])) continue;
        axes.y_low = std::min(axes.y_low, static_cast<double>((*values)[i]));
        axes.y_high = std::max(axes.y_high, static_cast<double>((*values)[i]));
      }
    }
  }
  if (!(axes.y_low <= axes.y_high)) axes.y_low = axes.y_high = 0;
  return axes;
}

void draw_curve(Chart& chart, const Axes& axes, const std::vector<float>& values, std::size_t dimension,
                std::size_t dimensions, const LineInk& ink) {
  std::vector<ChartPoint> points;
  const auto flush = [&] {
    if (points.size() == 1) chart.disc(points.front(), ink.width, ink.color);
    if (points.size() > 1) chart.polyline(points, ink);
    points.clear();
  };
  for (std::size_t i = dimension; i < values.size(); i += dimensions) {
    if (!std::isfinite(values[i])) {
      flush();
      continue;
    }
    const auto step = i / dimensions;
    points.push_back(axes.at(static_cast<double>(step), static_cast<double>(values[i])));
  }
  flush();
}

void draw_panel(Chart& chart, const ActionPlot& plot, std::size_t dimension, std::size_t column, Axes axes) {
  const ActionPlotWindow& window = plot.windows[column];
  const std::size_t dimensions = plot.names.size(), steps = steps_of(plot, window);
  axes.x_low = 0;
  axes.x_high = static_cast<double>(steps - 1);
  axes.settle();
  axes.area = {kLeft + static_cast<double>(column) * (kPanelWidth + kGap),
               kTop + static_cast<double>(dimension) * kPanelHeight, kPanelWidth, kPanelHeight - 34};
  const bool last = dimension + 1 == dimensions;
  axes.draw(chart, last ? "step" : "", column == 0 ? plot.names[dimension] : "", 11, 8, 3);
  for (std::int64_t at = plot.block; plot.block > 0 && at < static_cast<std::int64_t>(steps); at += plot.block) {
    const double x = axes.at(static_cast<double>(at), axes.y_low).x;
    chart.line({x, axes.area.y}, {x, axes.area.bottom()}, {.color = kMark, .dashed = true});
  }
  chart.clip({axes.area.x, axes.area.y - 2, axes.area.width + 4, axes.area.height + 4});
  draw_curve(chart, axes, window.recorded, dimension, dimensions, {.width = 1.6, .color = kRecorded});
  draw_curve(chart, axes, window.predicted, dimension, dimensions, {.width = 1.6, .color = kPredicted});
  chart.unclip();
}

}  // namespace

Result<void> draw_actions(const std::string& path, const ActionPlot& plot) {
  TROUPE_TRY(check(path, plot));
  const auto columns = static_cast<double>(plot.windows.size()), rows = static_cast<double>(plot.names.size());
  const double width = kLeft + columns * (kPanelWidth + kGap), height = kTop + rows * kPanelHeight + kBottom;
  Chart chart(static_cast<std::int64_t>(width), static_cast<std::int64_t>(height));
  chart.fitted_text({24, 32}, plot.title, {.size = 17, .bold = true}, width - 48);
  const auto legend = [&](double x, const char* name, const InkColor& color) {
    chart.line({x, 51}, {x + 26, 51}, {.width = 2.4, .color = color});
    chart.text({x + 32, 55}, name, {.size = 13});
  };
  legend(kLeft, "recorded", kRecorded);
  legend(kLeft + 120, "predicted", kPredicted);
  for (std::size_t c = 0; c < plot.windows.size(); ++c) {
    chart.fitted_text({kLeft + static_cast<double>(c) * (kPanelWidth + kGap), kTop - 14}, plot.windows[c].title,
                      {.size = 12}, kPanelWidth);
  }
  for (std::size_t d = 0; d < plot.names.size(); ++d) {
    const Axes range = range_of(plot, d);
    for (std::size_t c = 0; c < plot.windows.size(); ++c) draw_panel(chart, plot, d, c, range);
  }
  return chart.save(path);
}

}  // namespace troupe::workers
