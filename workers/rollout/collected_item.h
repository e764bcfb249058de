#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace troupe::workers {

/// One trajectory item (trajectory_layout.h) as a learner rank has copied it out of its feed: the slot is free
/// again.
struct CollectedItem {
  /// Of the feed: round * env.blocks + block.
  std::int64_t position = 0;
  /// XXH3-64 of `bytes`, as the rollout worker computed it; it goes into the ledger and the replay log.
  std::uint64_t xxh3 = 0;
  /// As many as item_bytes (ended_rows.h) says, read with ConstTrajectoryView.
  std::vector<std::byte> bytes;
};

}  // namespace troupe::workers
