#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace troupe::model {

// From entries to one number. Entries are [N, K or 1, A or 1] (granularity.h); a cell is what one reward belongs to: a
// row with chunk-level rewards, an action with action-level ones. Masks and weights are per cell, [N,C,1].

/// mean: over valid entries. trajectory: every trajectory weighs the same, whatever its length:
///     loss = mean_all( x * mask / (valid_steps / max_episode_steps) )          over all entries, masked ones included
enum class Aggregation : std::uint8_t { mean, trajectory };

/// What a cell counts in sums over a micro-batch.
struct CellWeights {
  at::Tensor mask;    ///< [N,C,1] bool
  at::Tensor metric;  ///< [N,C,1] mask / count: the weighted sum is the mean over valid cells
  at::Tensor loss;    ///< the same for the loss, by its Aggregation
};

/// Weights for a micro-batch that is the whole mini-batch, or, with `scale`, a part of it.
///
/// Shapes: mask_NC bool [N,C]; valid_steps_N1 [N,1], only for trajectory. scale, optional (undefined: this micro-batch
///         alone): 1 or 2 numbers, f32, {1 / valid cells, 1 / cells} of the whole mini-batch on all ranks, times the
///         number of parts whose mean the caller takes (micro-batches times ranks); with one number both are that.
///         Trajectory losses use the second.
CellWeights make_cell_weights(const at::Tensor& mask_NC, Aggregation aggregation, const at::Tensor& valid_steps_N1,
                              std::int64_t max_episode_steps, const at::Tensor& scale);

/// The weights of cells, one a row, or an action, shared evenly by those of their actions that were executed:
///     w[n,k] = w_cell[n] executed[n,k] / sum_k executed[n,k]
/// Shapes: cells [N,C,1], C = 1 or K; executed_NK bool [N,K]. Returns [N,K,1].
CellWeights shared_by_actions(const CellWeights& cells, const at::Tensor& executed_NK);

/// sum over entries of x * weight / (entries per cell). `weight` is [N,C,1]. x may be finer than a cell, and then its
/// cell's mean counts, or coarser (entropy per chunk under action-level rewards), and then it counts once for each cell
/// of its row.
/// Grad: x.
at::Tensor weighted_sum(const at::Tensor& x, const at::Tensor& weight);

}  // namespace troupe::model
