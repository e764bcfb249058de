#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "data/health/health_report.h"
#include "data/statistics/table_statistics.h"

namespace troupe {

/// What the rows of one episode do, measured against the whole dataset's ranges.
struct EpisodeMotion {
  std::int64_t idle_rows = 0, longest_idle = 0, outliers = 0, jumps = 0;
  std::string content;  ///< XXH3-128 over rows, names and float64 values of the columns in `hashed`
};

struct MotionPlan {
  std::vector<std::string> idle;    ///< state columns: a row is idle when all of them equal the row before, as float32
  std::vector<std::string> hashed;  ///< state and action columns, ascending
  std::int64_t threads = 0;
};

/// One more pass over the tables. Fills ColumnReport::histograms of `columns` (whose statistics are known) and returns
/// one entry per episode. The result does not depend on `threads`. Errors: those of TableSource::read.
Result<std::vector<EpisodeMotion>> measure_motion(const TableSource& source, std::span<ColumnReport> columns,
                                                  const MotionPlan& plan);

}  // namespace troupe
