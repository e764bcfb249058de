#include "workers/data/statistics.h"

#include <algorithm>
#include <cmath>

namespace troupe {

namespace {

/// Linear-interpolation quantile at position p*(n-1); partially sorts `values`.
double quantile(std::vector<double>& values, double p) {
  const double position = p * static_cast<double>(values.size() - 1);
  const auto low = static_cast<std::size_t>(std::floor(position));
  const double fraction = position - std::floor(position);
  const auto nth = values.begin() + static_cast<std::ptrdiff_t>(low);
  std::nth_element(values.begin(), nth, values.end());
  const double a = *nth;
  if (fraction == 0.0) return a;
  const double b = *std::min_element(nth + 1, values.end());
  // From the nearer end, so that the result never leaves [a, b].
  return fraction < 0.5 ? a + (b - a) * fraction : b - (b - a) * (1.0 - fraction);
}

void append_dimension(FeatureStatistics& out, std::vector<double>& values) {
  const auto n = static_cast<double>(values.size());
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  out.min.push_back(*low);
  out.max.push_back(*high);
  double sum = 0;
  for (double v : values) sum += v;
  const double mean = sum / n;
  // A second pass over deviations: the sum of squares would cancel where the spread is small beside the mean.
  double squares = 0;
  for (double v : values) squares += (v - mean) * (v - mean);
  out.mean.push_back(mean);
  out.std.push_back(std::sqrt(squares / n));
  out.q01.push_back(quantile(values, 0.01));
  out.q99.push_back(quantile(values, 0.99));
}

/// Differences of dimension `d` at horizon step `j`, appended to `values`.
void append_differences(const RelativeEpisode& e, std::size_t width, std::size_t d, std::int64_t horizon,
                        std::int64_t j, std::vector<double>& values) {
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
    return std::vector<double>(v.begin() + static_cast<std::ptrdiff_t>(begin),
                               v.begin() + static_cast<std::ptrdiff_t>(end));
  };
  return {part(min), part(max), part(mean), part(std), part(q01), part(q99)};
}

void StatisticsPool::add(std::span<const double> rows) {
  const std::size_t width = columns_.size();
  for (std::size_t d = 0; d < width; ++d) {
    for (std::size_t i = d; i < rows.size(); i += width) columns_[d].push_back(rows[i]);
  }
}

FeatureStatistics StatisticsPool::finish() {
  FeatureStatistics out;
  for (auto& column : columns_) {
    if (column.empty()) return {};
    append_dimension(out, column);
    column = {};
  }
  return out;
}

FeatureStatistics relative_statistics(std::span<const RelativeEpisode> episodes, std::size_t width,
                                      std::int64_t horizon) {
  FeatureStatistics out;
  for (std::size_t d = 0; d < width; ++d) {
    std::vector<double> values;
    for (const RelativeEpisode& e : episodes) {
      for (std::int64_t j = 0; j < horizon; ++j) append_differences(e, width, d, horizon, j, values);
    }
    if (values.empty()) return {};
    append_dimension(out, values);
  }
  return out;
}

std::vector<FeatureStatistics> relative_horizon_statistics(std::span<const RelativeEpisode> episodes, std::size_t width,
                                                           std::int64_t horizon) {
  std::vector<FeatureStatistics> out(static_cast<std::size_t>(horizon));
  for (std::int64_t j = 0; j < horizon; ++j) {
    for (std::size_t d = 0; d < width; ++d) {
      std::vector<double> values;
      for (const RelativeEpisode& e : episodes) append_differences(e, width, d, horizon, j, values);
      if (values.empty()) return {};
      append_dimension(out[static_cast<std::size_t>(j)], values);
    }
  }
  return out;
}

}  // namespace troupe
