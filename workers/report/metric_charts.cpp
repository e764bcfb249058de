#include "workers/report/metric_charts.h"

#include <fmt/format.h>

#include <set>
#include <vector>

#include "base/page/svg_curves.h"

namespace troupe::workers {

namespace {

/// A metric and how the legend calls it.
struct NamedMetric {
  const char* metric;
  const char* name;
};

struct ChartKind {
  const char* title;
  bool over_env_steps;
  std::vector<NamedMetric> metrics;
};

const std::vector<ChartKind>& chart_kinds() {
  static const std::vector<ChartKind> kinds{
      {"Loss",
       false,
       {{"train/loss", "training"},
        {"train/dynamics_loss", "training, video"},
        {"train/action_loss", "training, actions"},
        {"eval/loss", "held out"}}},
      {"Return of an episode", true, {{"env/return", "training episodes"}, {"eval/return", "evaluation"}}},
      {"Episodes with success", true, {{"env/success_once", "training episodes"}, {"eval/success_once", "evaluation"}}},
      {"Length of an episode", true, {{"env/episode_len", "training episodes"}, {"eval/episode_len", "evaluation"}}},
      {"Gradient norm before clipping",
       false,
       {{"train/grad_norm", "all parameters"}, {"train/actor/grad_norm", "all parameters (actor)"}}},
      {"Learning rate", false, {{"train/lr", "rate"}, {"train/actor/lr", "actor"}, {"train/critic/lr", "critic"}}},
      {"Seconds of a step",
       false,
       {{"time/step", "whole step"},
        {"time/compute", "compute"},
        {"time/stall", "waiting for data"},
        {"time/vote", "vote"},
        {"time/checkpoint", "checkpoint"}}}};
  return kinds;
}

constexpr const char* kEnvSteps = "env/total_steps";
constexpr std::size_t kFewPoints = 40;

SvgSeries series_of(const MetricFile& metrics, const std::string& metric, const std::string& name,
                    bool over_env_steps) {
  SvgSeries series{.name = name};
  const auto env_steps = metrics.curves.find(kEnvSteps);
  double last = 0;
  for (const auto& [step, value] : metrics.curves.at(metric)) {
    if (over_env_steps) {
      const auto at = env_steps->second.find(step);
      if (at != env_steps->second.end()) last = at->second;
    }
    series.x.push_back(over_env_steps ? last : static_cast<double>(step));
    series.y.push_back(value);
  }
  series.has_marks = series.x.size() <= kFewPoints;
  return series;
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
