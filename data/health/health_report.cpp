#include "data/health/health_report.h"

#include <algorithm>
#include <numeric>

namespace troupe::data {

Spread spread_of(std::vector<double> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  const std::size_t n = values.size();
  return {.min = values.front(),
          .median = (values[(n - 1) / 2] + values[n / 2]) / 2,
          .max = values.back(),
          .mean = std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(n)};
}

std::int64_t HealthReport::usable_episodes() const {
  return std::count_if(episodes.begin(), episodes.end(), [](const EpisodeReport& e) { return e.problems == 0; });
}

std::int64_t HealthReport::count(FindingLevel level) const {
  return std::count_if(findings.begin(), findings.end(), [&](const HealthFinding& f) { return f.level == level; });
}

const ColumnReport* HealthReport::column(const std::string& name) const {
  const auto it = std::find_if(columns.begin(), columns.end(), [&](const ColumnReport& c) { return c.name == name; });
  return it == columns.end() ? nullptr : &*it;
}

}  // namespace troupe::data
