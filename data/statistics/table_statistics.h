#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/progress.h"
#include "base/result.h"
#include "data/lerobot/modality.h"
#include "data/lerobot/parquet_table.h"
#include "data/statistics/statistics.h"

namespace troupe::data {

/// The tables of the episodes that statistics are made of.
struct TableSource {
  std::size_t episodes = 0;
  /// Table rows of one episode, from the metadata.
  std::function<std::int64_t(std::size_t place)> rows;
  /// Reads columns of one episode. Called from several threads at once, several times for one episode.
  std::function<Result<EpisodeTable>(std::size_t place, const TableColumns& columns)> read;
  /// Tables read in the pass that is under way; there may be several passes.
  Progress progress = {};
};

/// Calls `visit` with the tables of consecutive episodes, in order: as many at a time as have 2^17 rows together, read
/// by `threads` threads (0: one per CPU). Errors: those of read, the first episode's first.
using TableRound = std::function<Result<void>(std::size_t first, std::span<const EpisodeTable> tables)>;
Result<void> for_each_round(const TableSource& source, const TableColumns& columns, std::int64_t threads,
                            const TableRound& visit);

/// A vector column, or a scalar one, whose statistics are wanted.
struct WantedColumn {
  std::string name;
  std::size_t width = 1;
  /// float32 in the dataset: its values are kept as float32.
  bool narrow = false;
};

/// Relative actions action[t+j] - state[t] of one key, 0 <= j < horizon, t in range(L - (horizon - 1)), in float64
/// (GEAR's run-time variant, without its limit of 10,000 trajectories).
struct WantedRelative {
  /// Equally wide.
  VectorKey action, state;
};

/// What table_statistics computes, and with how much memory and how many threads.
struct StatisticsPlan {
  std::vector<WantedColumn> columns;
  std::vector<WantedRelative> relative;
  std::int64_t horizon = 24;
  /// Relative statistics of every step j too.
  bool per_step = false;
  /// Values kept at most, columns first, then relative actions.
  std::int64_t memory_bytes = std::int64_t{1} << 30;
  std::int64_t threads = 0;
};

/// Statistics of one relative key.
struct RelativeStatistics {
  FeatureStatistics pooled;
  /// One per step j; empty unless asked for.
  std::vector<FeatureStatistics> steps;
};

/// What table_statistics found, and how.
struct TableStatistics {
  /// In the order of StatisticsPlan::columns.
  std::vector<FeatureStatistics> columns;
  /// In the order of StatisticsPlan::relative; empty statistics mean that no episode is long enough.
  std::vector<RelativeStatistics> relative;
  /// True: quantiles came from values kept in memory; false: from refinement. The numbers are the same.
  bool columns_kept = true, relative_kept = true;
  /// Passes over the tables.
  std::int64_t passes = 0;
  std::int64_t rows = 0;
};

/// Exact statistics of all episodes together (ExactSeries): one pass over the tables where the values fit into
/// memory_bytes, else at most five more. Each episode is one block, blocks come in the order of episodes, and a
/// dimension belongs to one thread at a time, so the result does not depend on `threads`; whether values are kept
/// follows from the episodes' lengths and changes nothing but the time. Memory: memory_bytes, the tables of one round,
/// and 1.3 MB for each dimension that is refined.
///
/// Errors: those of TableSource::read; invalid_argument when a column's width differs from the plan's.
Result<TableStatistics> table_statistics(const TableSource& source, const StatisticsPlan& plan);

}  // namespace troupe::data
