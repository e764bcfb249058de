#include "workers/report/metric_charts.h"

#include <fmt/format.h>

#include <set>
#include <utility>

#include "base/page/svg_curves.h"
#include "workers/report/chart_kinds.h"

namespace troupe::workers {

namespace {

constexpr std::size_t kFewPoints = 40;

SvgSeries series_of(const MetricFile& metrics, const std::string& metric, const std::string& name,
                    bool over_env_steps) {
  MetricCurve curve = metric_curve(metrics, metric, over_env_steps);
  const bool has_few = curve.x.size() <= kFewPoints;
  return {.name = name, .x = std::move(curve.x), .y = std::move(curve.y), .has_marks = has_few};
}

}  // namespace

std::string metric_charts(const MetricFile& metrics) {
  std::set<std::string> shown{kEnvSteps};
  std::string out;
  for (const ChartKind& kind : chart_kinds()) {
    const bool over_env_steps = kind.over_env_steps && metrics.curves.count(kEnvSteps) != 0;
    SvgCurves chart{.title = kind.title, .x_title = over_env_steps ? "environment steps" : "optimizer step"};
    for (const auto& [metric, name] : kind.metrics) {
      if (metrics.curves.count(metric) == 0) continue;
      shown.insert(metric);
      chart.series.push_back(series_of(metrics, metric, name, over_env_steps));
    }
    if (!chart.series.empty()) out += svg_curves(chart);
  }
  if (!out.empty()) out = "<div class=\"charts\">\n" + out + "</div>\n";
  std::string others;
  std::size_t count = 0;
  for (const auto& [metric, values] : metrics.curves) {
    if (shown.count(metric) != 0) continue;
    ++count;
    others += svg_curves({.title = metric,
                          .x_title = "optimizer step",
                          .series = {series_of(metrics, metric, metric, false)},
                          .max_points = 200});
  }
  if (count == 0) return out;
  return out + fmt::format("<details><summary>{} more metrics</summary>\n<div class=\"charts\">\n{}</div></details>\n",
                           count, others);
}

}  // namespace troupe::workers
