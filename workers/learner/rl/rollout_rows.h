#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <string>

#include "configs/job_config.h"
#include "model/shard/network.h"
#include "workers/learner/rl/rollout_batch.h"

namespace troupe {

/// An iteration of this rank as rows for minibatches, and what was said about it.
struct RolloutRows {
  Batch rows;              ///< rl_keys names, each [N, ...], row t * B + b; what policy_gradient_loss reads
  std::int64_t count = 0;  ///< N
  at::Tensor valid_cells;  ///< [N,C] bool: cells of the loss, one per reward
};

/// What the computation needs beside the batch.
struct RowInputs {
  at::Tensor reward;                 ///< [T,B,K] scaled
  at::Tensor current_logp;           ///< [T*B,L] of the weights to be trained; vtrace only
  at::Tensor reference_logp;         ///< [T*B,L], with kl_beta
  std::int64_t trained_version = 0;  ///< version that the update makes
};

/// Advantages and returns by the job's algorithm (rl.md 3, 12.4), masks, and everything else the loss reads, flattened.
/// Advantages are not normalised yet. Errors are the job's own: shapes follow from one layout.
RolloutRows make_rollout_rows(const JobConfig& job, const RolloutBatch& batch, const RowInputs& inputs);

}  // namespace troupe
