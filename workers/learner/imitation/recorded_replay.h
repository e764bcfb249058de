#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "configs/job_config.h"
#include "workers/inference/agent/agent.h"
#include "workers/rollout/replay/replay_buffer.h"

namespace troupe::workers {

/// Columns of a recorded row beside those of RecordedSet: the reward of its action, and optionally whether the
/// environment ended the episode with it (a time limit does not).
inline constexpr const char* kRewardColumn = "next.reward";
inline constexpr const char* kTerminatedColumn = "next.terminated";

/// The recordings of data.sets as transitions, for algorithm.demonstration_share.
struct RecordedReplay {
  std::unique_ptr<const ReplayBuffer> transitions;
  /// 32 hex digits over every transition: equal fingerprints mean equal draws.
  std::string fingerprint;
  /// Folders of the datasets, in the order of data.sets.
  std::vector<std::string> roots;
};

/// Every row of an episode that is not held out is a transition to the row after it. A recording ends before the
/// observation behind its last row: that row is a transition only where it terminated the episode and terminations cut
/// the target (algorithm.sac.bootstrap), else it is left out. A policy that is told a text is told the row's task.
/// Everything is in memory.
///
/// Errors: those of RecordedSet; invalid_argument (pictures, fields that critics alone read, discrete actions, a
/// dataset without kRewardColumn, another kTerminatedColumn than of flags); failed_precondition (no transition).
Result<RecordedReplay> read_recorded_replay(const JobConfig& job, const Agent& agent);

/// As ReplayBuffer::draw of `own`, with the last round(share * rows) rows drawn from `recorded`; where that is empty,
/// all rows are from `own`.
Batch draw_with_demonstrations(const ReplayBuffer& own, const RecordedReplay& recorded, double share, std::int64_t rows,
                               std::uint64_t seed, std::uint64_t index);

}  // namespace troupe::workers
