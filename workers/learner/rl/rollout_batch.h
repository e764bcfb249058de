#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "model/policy/policy_net.h"
#include "workers/learner/rl/round_collector.h"

namespace troupe {

/// What one iteration collected on this rank, time first (rl.md 2.1, 2.2). T policy calls, B environments of all rounds side by
/// side (round by round, block by block), K actions, V values. f32, masks bool.
struct RolloutBatch {
  Batch observation;                         ///< rl_keys names: state [T+1,B,D], images [T+1,B,H,W,C]
  at::Tensor action;                         ///< [T,B,K*A]
  at::Tensor logp;                           ///< [T,B,L]; undefined without
  at::Tensor value;                          ///< [T+1,B,V]; undefined without a critic
  at::Tensor final_value;                    ///< [T,B,V]
  std::map<std::string, at::Tensor> extras;  ///< [T,B,...]
  at::Tensor version;                        ///< i64 [T,B]
  at::Tensor reward;                         ///< [T,B,K], raw
  at::Tensor terminated, truncated;          ///< bool [T,B,K]
  at::Tensor mask;                           ///< bool [T,B,K]: executed, and not lost
  at::Tensor lost;                           ///< bool [T,B]

  std::int64_t calls() const { return reward.size(0); }
  std::int64_t envs() const { return reward.size(1); }
};

/// Puts items of one layout side by side in the order given.
RolloutBatch make_rollout_batch(const TrajectoryLayout& layout, const PolicyNet& net, const PolicyShape& shape,
                                std::span<const CollectedItem> items);

/// What PolicyNet::logp reads to judge the batch's T * B actions again, row t * B + b; `noise_level` is that of the weights that judge.
Batch density_inputs(const RolloutBatch& batch, double noise_level);

}  // namespace troupe
