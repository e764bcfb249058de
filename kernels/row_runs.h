#pragma once

#include <cstdint>
#include <vector>

namespace troupe::kernels {

/// Rows [begin, end) of a matrix that share the row `table` of a table of modulations.
struct RowRun {
  /// Row numbers over the whole batch: sample * rows of a sample + token.
  std::int64_t begin = 0;
  std::int64_t end = 0;
  /// Which row of the table all of them use.
  std::int64_t table = 0;
};

/// The rows of `batch` samples of `rows` tokens each, cut where the table row changes and at least every kRunRows rows.
/// table_row: for each token of a sample its row of the `table_rows`; nullptr: row 0. `per_sample`: each sample has a
/// table of its own, and run.table counts over all of them.
/// The cut depends on the arguments alone, so sums that go run by run have one order whatever the number of threads.
inline std::vector<RowRun> row_runs(std::int64_t batch, std::int64_t rows, const std::int32_t* table_row,
                                    std::int64_t table_rows, bool per_sample) {
  constexpr std::int64_t kRunRows = 32;
  std::vector<RowRun> runs;
  for (std::int64_t b = 0; b < batch; ++b) {
    for (std::int64_t i = 0; i < rows;) {
      const auto row = table_row == nullptr ? 0 : table_row[i];
      std::int64_t end = i + 1;
      while (end < rows && end - i < kRunRows && (table_row == nullptr || table_row[end] == row)) ++end;
      runs.push_back({b * rows + i, b * rows + end, row + (per_sample ? b * table_rows : 0)});
      i = end;
    }
  }
  return runs;
}

}  // namespace troupe::kernels
