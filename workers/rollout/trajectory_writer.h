#pragma once

#include <cstdint>
#include <vector>

#include "configs/job_config.h"
#include "env/block_layout.h"
#include "workers/rollout/moments.h"
#include "workers/rollout/policy_shape_of.h"
#include "workers/rollout/trajectory_layout.h"

namespace troupe {

/// What of a block's past later policy steps need, beside its item: sums over episodes under way.
struct BlockHistory {
  std::vector<double> discounted;      ///< [n] discounted return so far
  std::vector<double> episode_return;  ///< [n] undiscounted
  std::vector<std::uint8_t> success;   ///< [n] of the episode: bit 0 ever, bit 1 at the last action
  std::vector<std::uint8_t>
      finished;                ///< [n] the episode has ended and its row is frozen (reset modes episode and fixed)
  Moments observed, returned;  ///< of the item under way
};

/// Observations at which episodes ended, one behind the other, for the value path.
struct FinalRows {
  std::vector<std::int64_t> rows;                 ///< of the block, ascending
  std::vector<float> state;                       ///< [rows,D], as the policy sees it
  std::vector<std::vector<std::uint8_t>> images;  ///< bytes of [rows,H,W,C] each
};

/// Writes one block's transitions into an item. Knows the two layouts and nothing of channels, weights or policies. One thread.
class TrajectoryWriter {
 public:
  TrajectoryWriter(const JobConfig& job, const EnvSpec& spec, const TrajectoryLayout& layout);

  const BlockLayout& block_layout() const { return block_; }
  BlockView block(std::byte* memory) const { return {&block_, memory}; }
  BlockHistory new_history() const;

  /// Zeros the item and writes its head. Episodes begin anew: forgets the history; else they go on.
  void begin(TrajectoryView item, std::int64_t round, std::int64_t block, bool continues, BlockHistory& history) const;
  /// Observations of call `call` (T: those after the last step), as `scale` makes them. Calls below T are counted.
  void observe(TrajectoryView item, std::int64_t call, const BlockView& from, const StateScale& scale,
               BlockHistory& history) const;
  /// What call `call` brought: rewards, flags, records.
  void transition(TrajectoryView item, std::int64_t call, const BlockView& from, BlockHistory& history) const;
  /// The observations at which episodes ended in call `call`, into `finals`; with an off-policy algorithm into the item too.
  void finals(TrajectoryView item, std::int64_t call, const BlockView& from, const StateScale& scale,
              FinalRows& finals) const;
  /// After the last call: records of episodes that end with the item, statistics, versions.
  void finish(TrajectoryView item, const BlockView& from, BlockHistory& history) const;

 private:
  void gather(std::span<const std::int64_t> offsets, const BlockView& from, std::int64_t row, float* state) const;

  const TrajectoryLayout& layout_;
  const BlockLayout block_;
  const ObservationParts parts_;
  const double gamma_;
  const bool per_action_;      ///< the discount counts control steps, not policy steps
  const bool ends_with_item_;  ///< reset modes episode and fixed
};

}  // namespace troupe
