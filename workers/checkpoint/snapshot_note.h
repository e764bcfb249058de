#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/result.h"

namespace troupe::workers {

/// What rank 0 says along with its snapshot, in the field `trainer_state` of SnapshotReady and CheckpointBegin:
/// things of the checkpoint that are not in the shards. The first goes into the manifest, the second into
/// trainer_state.json.
struct SnapshotNote {
  /// Optimizer updates of each unit group (Engine::group_updates).
  std::map<std::string, std::int64_t> group_updates;
  /// Trainer::state().
  std::string trainer;
};

/// Name of the attachment.
inline constexpr const char* kTrainerStateFile = "trainer_state.json";

/// JSON; empty where there is nothing to say: no state, and every group has seen all `updates`.
std::string to_text(const SnapshotNote& note, std::int64_t updates);
/// Of the empty text: an empty note. Errors: invalid_argument.
Result<SnapshotNote> snapshot_note(const std::string& text);

}  // namespace troupe::workers
