#include "data/statistics/statistics.h"

#include <algorithm>
#include <cmath>

namespace troupe::data {

namespace {

/// Differences of dimension `d` at horizon step `j` of one episode.
void read_differences(const RelativeEpisode& e, std::size_t width, std::size_t d, std::int64_t horizon, std::int64_t j,
                      std::vector<double>& values) {
  values.clear();
  const auto length = static_cast<std::int64_t>(e.action.size() / width);
  for (std::int64_t t = 0; t < length - (horizon - 1); ++t) {
    values.push_back(e.action[static_cast<std::size_t>(t + j) * width + d] -
                     e.state[static_cast<std::size_t>(t) * width + d]);
  }
}

}  // namespace

bool FeatureStatistics::is_complete(std::size_t width) const {
  for (const auto* v : {&min, &max, &mean, &std, &q01, &q99}) {
    if (v->size() != width) return false;
    for (double x : *v) {
      if (!std::isfinite(x)) return false;
    }
  }
  return true;
}

FeatureStatistics FeatureStatistics::slice(std::size_t begin, std::size_t end) const {
  const auto part = [&](const std::vector<double>& v) {
    if (v.size() < end) return std::vector<double>();
    return std::vector<double>(v.begin() + static_cast<std::ptrdiff_t>(begin),
                               v.begin() + static_cast<std::ptrdiff_t>(end));
  };
  return {.min = part(min),
          .max = part(max),
          .mean = part(mean),
          .std = part(std),
          .q01 = part(q01),
          .q99 = part(q99),
          .q10 = part(q10),
          .q50 = part(q50),
          .q90 = part(q90)};
}

void FeatureStatistics::append(const SeriesSummary& s) {
  min.push_back(s.min);
  max.push_back(s.max);
  mean.push_back(s.mean);
  std.push_back(s.std);
  q01.push_back(s.quantiles[0]);
  q10.push_back(s.quantiles[1]);
  q50.push_back(s.quantiles[2]);
  q90.push_back(s.quantiles[3]);
  q99.push_back(s.quantiles[4]);
}

void StatisticsPool::add(std::span<const double> rows) {
  const std::size_t width = columns_.size();
  std::vector<double> values;
  for (std::size_t d = 0; d < width; ++d) {
    values.clear();
    for (std::size_t i = d; i < rows.size(); i += width) values.push_back(rows[i]);
    columns_[d].add(values);
  }
}

FeatureStatistics StatisticsPool::finish() {
  FeatureStatistics out;
  for (ExactSeries& column : columns_) {
    column.end_pass();
    if (column.summary().count == 0) return {};
    out.append(column.summary());
  }
  return out;
}

FeatureStatistics relative_statistics(std::span<const RelativeEpisode> episodes, std::size_t width,
                                      std::int64_t horizon) {
  FeatureStatistics out;
  std::vector<double> values;
  for (std::size_t d = 0; d < width; ++d) {
    ExactSeries pool(false, true);
    for (const RelativeEpisode& e : episodes) {
      for (std::int64_t j = 0; j < horizon; ++j) {
        read_differences(e, width, d, horizon, j, values);
        pool.add(values);
      }
    }
    pool.end_pass();
    if (pool.summary().count == 0) return {};
    out.append(pool.summary());
  }
  return out;
}

std::vector<FeatureStatistics> relative_horizon_statistics(std::span<const RelativeEpisode> episodes, std::size_t width,
                                                           std::int64_t horizon) {
  std::vector<FeatureStatistics> out(static_cast<std::size_t>(horizon));
  std::vector<double> values;
  for (std::int64_t j = 0; j < horizon; ++j) {
    for (std::size_t d = 0; d < width; ++d) {
      ExactSeries pool(false, true);
      for (const RelativeEpisode& e : episodes) {
        read_differences(e, width, d, horizon, j, values);
        pool.add(values);
      }
      pool.end_pass();
      if (pool.summary().count == 0) return {};
      out[static_cast<std::size_t>(j)].append(pool.summary());
    }
  }
  return out;
}

}  // namespace troupe::data
