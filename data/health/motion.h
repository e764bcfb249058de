#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "data/health/health_report.h"
#include "data/statistics/table_statistics.h"

namespace troupe::data {

/// What the table rows of one episode do, measured against the whole dataset's ranges; see EpisodeReport.
struct EpisodeMotion {
  std::int64_t idle_rows = 0, longest_idle = 0, outliers = 0, jumps = 0;
  /// XXH3-128 over rows, names and float64 values of the columns in `hashed`.
  std::string content;
};

/// What measure_motion looks at.
struct MotionPlan {
  /// State columns: a row is idle when all of them equal the row before, as float32.
  std::vector<std::string> idle;
  /// State and action columns, ascending, whose values make EpisodeMotion::content.
  std::vector<std::string> hashed;
  std::int64_t threads = 0;
  /// Called with every episode's table, from several threads; empty: not called.
  std::function<void(std::size_t episode, const EpisodeTable& table)> on_table{};
};

/// A row is idle when all columns of MotionPlan::idle equal the row before; an outlier is a value more than
/// 3 (q99 - q01) outside [q01, q99]; a jump is a step of more than (q99 - q01) / 2 from one row to the next, in
/// dimensions whose histogram of 48 parts has more than 3 in use (a gripper's command jumps by nature).
///
/// One more pass over the tables. Fills ColumnReport::histograms of `columns` (whose statistics are known) and returns
/// one entry per episode. The result does not depend on `threads`. Errors: those of TableSource::read.
Result<std::vector<EpisodeMotion>> measure_motion(const TableSource& source, std::span<ColumnReport> columns,
                                                  const MotionPlan& plan);

}  // namespace troupe::data
