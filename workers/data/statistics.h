#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace troupe {

/// Six statistics per dimension. `std` is the population's; q01 and q99 are linear-interpolation quantiles at p*(n-1).
struct FeatureStatistics {
  std::vector<double> min, max, mean, std, q01, q99;

  std::size_t width() const { return q01.size(); }
  /// True when all six have `width` finite values.
  bool is_complete(std::size_t width) const;
  /// Dimensions [begin, end).
  FeatureStatistics slice(std::size_t begin, std::size_t end) const;
};

/// Exact statistics of rows added in any order. Keeps every value: 8 bytes per row and dimension.
/// Not thread-safe; one thread at a time.
class StatisticsPool {
 public:
  explicit StatisticsPool(std::size_t width) : columns_(width) {}

  /// Adds row-major rows; rows.size() is a multiple of the width.
  void add(std::span<const double> rows);
  /// Statistics of everything added; empty when nothing was. Reorders and releases the values kept.
  FeatureStatistics finish();

 private:
  std::vector<std::vector<double>> columns_;
};

/// One episode's rows of an action key and of the state key of the same name, row-major, equally wide.
struct RelativeEpisode {
  std::span<const double> action;
  std::span<const double> state;
};

/// Statistics of the pool of all action[t+j] - state[t], 0 <= j < horizon, t in range(L - (horizon - 1)), in float64.
/// Works one dimension at a time: peak memory is 8 bytes x rows x horizon. Source: data.md 2.3, the run-time variant.
FeatureStatistics relative_statistics(std::span<const RelativeEpisode> episodes, std::size_t width,
                                      std::int64_t horizon);

/// The same pool split by j: element j holds the statistics of step j.
std::vector<FeatureStatistics> relative_horizon_statistics(std::span<const RelativeEpisode> episodes, std::size_t width,
                                                           std::int64_t horizon);

}  // namespace troupe
