#pragma once

#include <cstdint>
#include <span>
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
  /// Dimensions [begin, end).
  FeatureStatistics slice(std::size_t begin, std::size_t end) const;
  /// Appends one dimension.
  void append(const SeriesSummary& s);
};

/// Exact statistics of rows added in any order. Keeps every value: 8 bytes per row and dimension.
/// Not thread-safe; one thread at a time.
class StatisticsPool {
 public:
  explicit StatisticsPool(std::size_t width) : columns_(width, ExactSeries(false, true)) {}

  /// Adds row-major rows; rows.size() is a multiple of the width.
  void add(std::span<const double> rows);
  /// Statistics of everything added; empty when nothing was. Ends the pool.
  FeatureStatistics finish();

 private:
  std::vector<ExactSeries> columns_;
};

/// One episode's rows of an action key and of the state key of the same name, row-major, equally wide.
struct RelativeEpisode {
  std::span<const double> action;
  std::span<const double> state;
};

/// Statistics of the pool of all action[t+j] - state[t], 0 <= j < horizon, t in range(L - (horizon - 1)), in float64.
/// Works one dimension at a time: peak memory is 8 bytes x rows x horizon. This is GEAR's run-time variant, over
/// all episodes (GEAR draws 10,000 where there are more).
FeatureStatistics relative_statistics(std::span<const RelativeEpisode> episodes, std::size_t width,
                                      std::int64_t horizon);

/// The same pool split by j: element j holds the statistics of step j.
std::vector<FeatureStatistics> relative_horizon_statistics(std::span<const RelativeEpisode> episodes, std::size_t width,
                                                           std::int64_t horizon);

}  // namespace troupe::data
