#pragma once

#include <cstddef>
#include <vector>

#include "data/statistics/exact_series.h"

namespace troupe::data {

/// Statistics per dimension. `std` is the population's; quantiles are linear-interpolation ones at p*(n-1). The first
/// six are what normalisation and GEAR's files need; q10, q50 and q90 are LeRobot v3.0's and may be empty.
struct FeatureStatistics {
  std::vector<double> min{}, max{}, mean{}, std{}, q01{}, q99{};
  std::vector<double> q10{}, q50{}, q90{};

  std::size_t width() const { return q01.size(); }
  /// True when the first six have `width` finite values.
  bool is_complete(std::size_t width) const;
  /// Dimensions where q01 = q99.
  std::vector<std::size_t> constant_dimensions() const;
  /// Dimensions [begin, end).
  FeatureStatistics slice(std::size_t begin, std::size_t end) const;
  /// Appends one dimension.
  void append(const SeriesSummary& s);
};

}  // namespace troupe::data
