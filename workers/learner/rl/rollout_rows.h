#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <string>

#include "configs/job_config.h"
#include "model/shard/network.h"
#include "workers/learner/rl/rollout_batch.h"

namespace troupe::workers {

/// The samples of one iteration on this rank, as rows for minibatches. Row t * B + b is policy step t of row b of
/// RolloutBatch: an environment, or one of its agents.
struct RolloutRows {
  /// rl_keys names, each [N, ...], row t * B + b; what policy_gradient_loss reads. Memories are [B, ...].
  Batch rows;
  /// N.
  std::int64_t count = 0;
  /// Rows that stay together in a minibatch: the T steps of one row of RolloutBatch if the policy has a memory, else 1.
  std::int64_t sequence = 1;
  /// [N,C] bool: cells of the loss, one per reward: C = K with reward_level action, else 1.
  at::Tensor valid_cells;
};

/// What the computation needs beside the batch.
struct RowInputs {
  /// [T,B,K] scaled.
  at::Tensor reward;
  /// [T*B,L] of the weights to be trained; vtrace only.
  at::Tensor current_logp = {};
  /// [T*B,L], with kl_beta.
  at::Tensor reference_logp = {};
  /// Version that the update makes.
  std::int64_t trained_version = 0;
};

/// Advantages and returns by the job's algorithm, masks, and everything else the loss reads, flattened. Advantages
/// are not normalised yet.
///     ppo, decoupled_ppo   GAE (Schulman et al. 2016, arXiv 1506.02438, eq. 16) with the values of collection time
///     vtrace               V-trace with bars rho_bar, c_bar (Espeholt et al. 2018, arXiv 1802.01561, eq. 1), with the
///                          batch's values: those of the present critic (value_again)
///     grpo                 (R - mean) / deviation of the episode returns R of a group of env.group_size
/// With reset mode auto the final observation's value is added to the reward at the ends that algorithm.bootstrap
/// says. A lost row ends its trajectory and has no part in the loss; with grpo its group has none. Actions past
/// env.exec_steps have no advantage. Errors are the job's own: shapes follow from one layout.
RolloutRows make_rollout_rows(const JobConfig& job, const RolloutBatch& batch, const RowInputs& inputs);

}  // namespace troupe::workers
