#pragma once

#include <vector>

namespace troupe::workers {

/// A metric and how the legend calls it.
struct NamedMetric {
  const char* metric;
  const char* name;
};

/// Metrics that belong on one chart.
struct ChartKind {
  const char* title;
  bool over_env_steps;
  std::vector<NamedMetric> metrics;
};

/// The charts that people ask for, in the order of a page; other metrics get one each behind them.
const std::vector<ChartKind>& chart_kinds();

}  // namespace troupe::workers
