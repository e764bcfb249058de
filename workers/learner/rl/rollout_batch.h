#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "model/policy/policy_net.h"
#include "workers/learner/rl/round_collector.h"

namespace troupe::workers {

/// What one iteration collected on this rank, time first. T policy calls, B rows of all rounds side by side (round by
/// round, block by block), which are environments, or the agents of each where it has several; K actions, D state
/// columns, L log-probabilities, V values. f32, masks bool. Tensors own their memory.
struct RolloutBatch {
  /// rl_keys names: state [T+1,B,D], images [T+1,B,H,W,C], texts [T+1,B,bytes].
  Batch observation;
  /// [T,B,K*A].
  at::Tensor action;
  /// [T,B,L]; undefined without.
  at::Tensor logp;
  /// [T+1,B,V]; undefined without a critic.
  at::Tensor value;
  /// [T,B,V]: value of the observation at which an episode ended, 0 elsewhere; undefined without a critic.
  at::Tensor final_value;
  /// [E,...] by rl_keys names: the observations at which episodes ended, in the order of final_rows; empty where items
  /// do not hold them.
  Batch final_observation;
  /// i64 [E]: row t * B + b of each, ascending; undefined where items do not hold them.
  at::Tensor final_rows;
  /// [T,B,...] by PolicyNet's names.
  std::map<std::string, at::Tensor> extras;
  /// [B,W] by PolicyNet's names: before the first call. Empty without.
  std::map<std::string, at::Tensor> memory;
  /// Bool [T,B]: an episode begins with the call, which remembers nothing. False at the first: there `memory` says so.
  at::Tensor begins;
  /// i64 [T,B]: of the weights that acted.
  at::Tensor version;
  /// [T,B,K], raw.
  at::Tensor reward;
  /// Bool [T,B,K].
  at::Tensor terminated, truncated;
  /// Bool [T,B,K]: executed, and not lost.
  at::Tensor mask;
  /// Bool [T,B].
  at::Tensor lost;

  std::int64_t calls() const { return reward.size(0); }
  std::int64_t rows() const { return reward.size(1); }
};

/// Puts items of one layout side by side in the order given: [T,n,...] of m items becomes [T,m n,...].
RolloutBatch make_rollout_batch(const TrajectoryLayout& layout, const PolicyNet& net, const PolicyShape& shape,
                                std::span<const CollectedItem> items);

/// The batch's memories and beginnings of episodes as policies read them, by rl_keys names, B sequences of T calls;
/// empty for a policy that remembers nothing.
Batch memory_inputs(const RolloutBatch& batch);

/// What PolicyNet::logp reads to judge the batch's T * B actions again, row t * B + b; `noise_level` is that of the
/// weights that judge.
Batch density_inputs(const RolloutBatch& batch, double noise_level);

}  // namespace troupe::workers
