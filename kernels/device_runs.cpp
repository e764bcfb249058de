#include "kernels/device_runs.h"

#include <algorithm>
#include <limits>

#include "base/check.h"

namespace troupe::kernels {

SortedRuns sort_runs(const std::vector<RowRun>& runs, std::int64_t table_rows) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  TROUPE_CHECK(table_rows >= 0 && table_rows <= kMost, "table rows are counted in 31 bits");
  TROUPE_CHECK(static_cast<std::int64_t>(runs.size()) <= kMost, "a grid takes 2^31 - 1 runs");
  SortedRuns sorted{{}, std::vector<std::int32_t>(static_cast<std::size_t>(table_rows) + 1)};
  for (const auto& run : runs) {
    TROUPE_CHECK(run.table >= 0 && run.table < table_rows, "a run uses a row of its table");
    TROUPE_CHECK(run.begin < run.end && run.end - run.begin <= kMaxRunRows, "the kernels cover 1 to 32 rows of a run");
    ++sorted.first[static_cast<std::size_t>(run.table) + 1];
    sorted.runs.push_back(
        {run.begin, static_cast<std::int32_t>(run.end - run.begin), static_cast<std::int32_t>(run.table)});
  }
  for (std::size_t r = 1; r < sorted.first.size(); ++r) sorted.first[r] += sorted.first[r - 1];
  std::stable_sort(sorted.runs.begin(), sorted.runs.end(),
                   [](const DeviceRun& a, const DeviceRun& b) { return a.table < b.table; });
  return sorted;
}

}  // namespace troupe::kernels
