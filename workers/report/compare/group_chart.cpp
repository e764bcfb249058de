#include "workers/report/compare/group_chart.h"

#include <cmath>

#include "workers/report/compare/group_curve.h"
#include "workers/report/loss_plot.h"

namespace troupe::workers {

namespace {

struct MainMetric {
  const char* metric;
  const char* title;
  bool over_env_steps;
};

std::vector<LossSeries> series_of(const std::vector<RunGroup>& groups, const MainMetric& main,
                                  std::size_t fewest_points) {
  std::vector<LossSeries> series;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const GroupCurve curve = group_curve(groups[g], main.metric, main.over_env_steps);
    if (curve.x.size() < fewest_points) return {};
    LossSeries one{.name = groups[g].label, .role = LossRole::group, .group = g};
    for (std::size_t i = 0; i < curve.x.size(); ++i) {
      one.points.push_back({.step = std::llround(curve.x[i]), .value = curve.middle[i]});
      if (!curve.low.empty()) one.band.push_back({.low = curve.low[i], .high = curve.high[i]});
    }
    series.push_back(std::move(one));
  }
  return series;
}

}  // namespace

Result<void> draw_groups(const std::string& path, const std::string& title, const std::vector<RunGroup>& groups) {
  constexpr MainMetric kMetrics[] = {{"eval/return", "return of an evaluation's episode", true},
                                     {"env/return", "return of a training episode", true},
                                     {"eval/loss", "held-out loss", false},
                                     {"train/loss", "training loss", false}};
  std::vector<LossSeries> series;
  LossPlotOptions options{.title = title + ": interquartile mean of the seeds, 95% bootstrap interval"};
  // a curve of one or two evaluations shows nothing of how it was learned, unless nothing else is there
  for (const std::size_t fewest_points : {3u, 1u}) {
    for (const MainMetric& main : kMetrics) {
      if (!series.empty()) break;
      series = series_of(groups, main, fewest_points);
      options.x_title = main.over_env_steps ? "environment steps" : "optimizer step";
      options.y_title = main.title;
    }
  }
  return draw_loss_curves(path, series, options);
}

}  // namespace troupe::workers
