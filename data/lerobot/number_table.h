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

/// {"min", "max", "mean", "std", "count"} as in episodes_stats.jsonl: one value per number of a row, std of the
/// population; extremes of booleans are booleans. The column has at least one row.
nlohmann::ordered_json column_statistics(const NumberTableColumn& column);

}  // namespace troupe::data
