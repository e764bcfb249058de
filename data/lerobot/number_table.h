#pragma once

// Internal to data/lerobot: a table of numbers under construction, and what its columns are like.
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/result.h"

namespace troupe::data {

/// One column of a table: `width` numbers per row, row-major. float64 holds every float32, and integers below 2^53.
struct NumberTableColumn {
  enum class Type : std::uint8_t { float32, int64, boolean };
  std::string name;
  Type type = Type::float32;
  /// Above 1: lists of fixed size.
  std::size_t width = 1;
  /// rows * width of them.
  std::vector<double> values;
};

/// Writes a Parquet file of one row group, Snappy. Errors: invalid_argument (columns of uneven length);
/// resource_exhausted, unavailable.
Result<void> write_number_table(const std::string& path, const std::vector<NumberTableColumn>& columns);

/// The quantiles that LeRobot states of a column, and of a camera's pixels.
struct StatedQuantile {
  const char* name;
  double p;
};
inline constexpr StatedQuantile kStatedQuantiles[] = {
    {"q01", 0.01}, {"q10", 0.10}, {"q50", 0.50}, {"q90", 0.90}, {"q99", 0.99}};

/// Linear interpolation at p (n - 1) of n > 0 ascending values.
double interpolated(const std::vector<double>& sorted, double p);

/// {"min", "max", "mean", "std", "count", "q01", "q10", "q50", "q90", "q99"} as in episodes_stats.jsonl: one value per
/// number of a row, std of the population; extremes of booleans are booleans. The column has at least one row.
nlohmann::ordered_json column_statistics(const NumberTableColumn& column);

}  // namespace troupe::data
