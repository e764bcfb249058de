#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "base/result.h"
#include "workers/rollout/collected_item.h"

namespace troupe::workers {

/// What a replay buffer holds, on disk: one file of trajectory items per committed step and rank, so that a resumed
/// run has its experience back (docs/rl.md#replay-on-disk). Files of steps that were rolled back are
/// removed, those whose transitions have all been evicted too. A file of a rank that is no more, since the group
/// became smaller, is kept by rank modulo world. Used by the rank's thread.
///
///     RUN/replay/step-NNNNNNNNN-rank-R.items
///         "TRPITEM1", then per item i64 position, u64 bytes, u64 XXH3-64, the bytes
/// Little-endian. A file appears under its name only when it is complete (temporary file, fsync, rename).
class ReplayLog {
 public:
  /// `folder` is RUN/replay; it is made by the first append().
  ReplayLog(std::string folder, std::int64_t rank, std::int64_t world)
      : folder_(std::move(folder)), rank_(rank), world_(world) {}

  /// Writes the items of a step and syncs them. Errors: those of file_error.
  Result<void> append(std::int64_t step, std::span<const CollectedItem> items) const;
  /// Items of the steps [first, end) of all ranks, in order of position. Errors: data_loss for one that does not
  /// check, naming the file; what `visit` returns.
  Result<void> read(std::int64_t first, std::int64_t end,
                    const std::function<Result<void>(const CollectedItem&)>& visit) const;
  /// Removes the files in this rank's care whose step is below `first`, or not below `end`. What cannot be removed
  /// stays.
  void keep(std::int64_t first, std::int64_t end) const;

 private:
  std::string folder_;
  std::int64_t rank_, world_;
};

}  // namespace troupe::workers
