#pragma once

#include <cstdint>
#include <vector>

#include "kernels/row_runs.h"

namespace troupe::kernels {

/// Rows of a run at most, as row_runs() cuts them. The kernels launch this many blocks for each run.
inline constexpr std::int64_t kMaxRunRows = 32;

/// A RowRun as the kernels read it, at once: 16 bytes.
struct alignas(16) DeviceRun {
  std::int64_t begin = 0;
  /// 1 to kMaxRunRows.
  std::int32_t rows = 0;
  std::int32_t table = 0;
};

/// Runs of rows in device memory, for the kernels that read one row of a table for each row of a matrix.
///
/// The runs are sorted by table row, so that the second stage of a table's gradient finds those of one table row side
/// by side. All pointers are to device memory, are not owned, and stay valid until the kernels that got them have run.
struct DeviceRuns {
  /// `count` runs; no row is in two of them.
  const DeviceRun* runs = nullptr;
  std::int64_t count = 0;
  /// table_rows + 1 places: runs [first[r], first[r + 1]) use table row r.
  const std::int32_t* first = nullptr;
  std::int64_t table_rows = 0;
};

/// What DeviceRuns points to, on the host. The caller copies both vectors to the device.
struct SortedRuns {
  std::vector<DeviceRun> runs;
  std::vector<std::int32_t> first;
};

/// Sorts runs by table row. Runs of one table row keep their order, so a sum over them has the order of the host's.
/// Aborts where a run names no table row of [0, table_rows), has no rows or more than kMaxRunRows, or where there are
/// more than 2^31 - 1 runs or table rows: row_runs() makes none of these.
SortedRuns sort_runs(const std::vector<RowRun>& runs, std::int64_t table_rows);

}  // namespace troupe::kernels
