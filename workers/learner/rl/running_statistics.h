#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <string>

#include "base/result.h"
#include "comm/collective/collective.h"
#include "configs/rollout_config.h"
#include "workers/learner/rl/round_collector.h"
#include "workers/rollout/moments.h"

namespace troupe::workers {

/// Statistics of observations and of the discounted return over the whole job: merged from the items of all ranks in
/// order of position, so that they are the same on every rank and do not depend on the number of ranks or workers.
/// Used by the rank's thread.
class RunningStatistics {
 public:
  /// `state_dim` D counts with rollout.normalize_obs, the return with normalize_reward.
  RunningStatistics(const RolloutConfig& config, std::int64_t state_dim);

  const NormaliserState& state() const { return state_; }
  void restore(NormaliserState state) { state_ = std::move(state); }
  /// Nothing counted; the dimensions stay.
  ///
  void clear();

  /// Merges what the items of one step carry. `first_position` and `count` are the step's over all ranks. Collective.
  Result<void> merge(const TrajectoryLayout& layout, std::span<const CollectedItem> items, std::int64_t first_position,
                     std::int64_t count, Collective& group);

  /// clamp(r / sqrt(var(return) + 1e-8), -clip, clip) with normalize_reward, else r. Source: Gymnasium's
  /// NormalizeReward.
  at::Tensor scale_reward(const at::Tensor& reward) const;

 private:
  const RolloutConfig config_;
  const std::int64_t state_dim_;
  NormaliserState state_;
};

}  // namespace troupe::workers
