#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace troupe::model {

// Group-relative advantages (GRPO, arXiv:2402.03300). Shape legend: T policy calls, B environments, K actions in a
// chunk, S steps; G neighbouring environments are a group, which began in the same state.

/// score_b: the return of the first episode, by the backward scan s = s (1 - done_{s+1}) + r_s. [S,B], [S+1,B] -> [B].
at::Tensor first_episode_scores(const at::Tensor& rewards_SB, const at::Tensor& dones_S1B);

/// (s - mean_g) / (std_g + 1e-6), unbiased std, each group alone; 0 for groups of one. [B] -> [B].
/// Errors: throws c10::Error where G does not divide B. Source: arXiv:2402.03300.
at::Tensor group_relative(const at::Tensor& scores_B, std::int64_t group_size);

/// A group-relative advantage for every valid step: the environment's, times the mask.
/// Shapes: rewards, [T,B,K]; dones [T+1,B,K]; mask bool [T,B,K] for action-level, [T,B,1] for chunk-level rewards (a
///         chunk's rewards are summed, its flags joined). Returns floating, shape of the mask.
at::Tensor grpo_advantages(const at::Tensor& rewards_TBK, const at::Tensor& dones_T1BK, const at::Tensor& mask,
                           std::int64_t group_size);

/// Which environments' groups are kept: low <= mean over the group of the masked return <= high. [T,B,K], mask [T,B,K
/// or 1] -> bool [B]. The mask undefined counts every step. The caller joins it to the loss mask; the counts of valid
/// steps stay.
at::Tensor kept_groups(const at::Tensor& rewards_TBK, const at::Tensor& mask, std::int64_t group_size, double low,
                       double high);

}  // namespace troupe::model
