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
/// removed, those whose transitions have all been evicted too, and the oldest where a limit of bytes asks for it. A
/// file of a rank that is no more, since the group became smaller, is kept by rank modulo world. Used by the rank's
/// thread.
///
///     RUN/replay/step-NNNNNNNNN-rank-R.items
///         "TRPITEM1", then per item i64 position, u64 bytes, u64 XXH3-64, the bytes
/// Little-endian. A file appears under its name only when it is complete (temporary file, fsync, rename).
class ReplayLog {
 public:
  /// `folder` is RUN/replay; it is made by the first append(). The files in this rank's care have at most `max_bytes`
  /// together; 0: no limit.
  ReplayLog(std::string folder, std::int64_t rank, std::int64_t world, std::int64_t max_bytes = 0)
      : folder_(std::move(folder)), rank_(rank), world_(world), max_bytes_(max_bytes) {}

  /// Writes the items of a step and syncs them; removes the oldest files in this rank's care before, until there is
  /// room for them. A step that is larger than the limit is written, and is alone. Errors: those of file_error.
  Result<void> append(std::int64_t step, std::span<const CollectedItem> items) const;
  /// Items of the steps [first, end) of all ranks, in order of position. Errors: data_loss for one that does not
  /// check, naming the file; what `visit` returns.
  Result<void> read(std::int64_t first, std::int64_t end,
                    const std::function<Result<void>(const CollectedItem&)>& visit) const;
  /// Removes the files in this rank's care whose step is below `first`, or not below `end`. What cannot be removed
  /// stays.
  void keep(std::int64_t first, std::int64_t end) const;

 private:
  /// Removes the oldest files in this rank's care until `bytes` of `step` fit.
  void make_room(std::int64_t step, std::int64_t bytes) const;

  std::string folder_;
  std::int64_t rank_, world_, max_bytes_;
};

}  // namespace troupe::workers
