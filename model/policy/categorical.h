#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace troupe::model {

// Categorical distributions, one per action of a chunk. Shape legend: N batch rows, K actions of a chunk, C choices.
// `logits` [N,K*C], choice c of action k at k*C + c; actions are indices stored as f32 [N,K], as in a trajectory. f32;
// differentiable by autograd.

/// Stands for the logit of a choice that is not allowed: exp() of it is 0 beside any logit of a network, and it stays
/// finite, so that what is multiplied by that 0 does too.
inline constexpr float kMaskedLogit = -1e30F;

/// Logits [N,C] of one action with those that `mask` [N,C] does not allow (0) replaced by kMaskedLogit: nothing is
/// drawn of them, and no gradient reaches them. A row that allows nothing stays as it is.
at::Tensor masked_logits(const at::Tensor& logits, const at::Tensor& mask);

/// log softmax over the choices, [N,K,C]: l_c - log sum_j exp(l_j).
at::Tensor categorical_log_probs(const at::Tensor& logits, std::int64_t choices);

/// Indices [N,K] f32 by the inverse of the cumulative distribution: the first choice whose cumulative probability
/// exceeds the uniform number in [0, 1), which has shape [N,K]. Where rounding leaves the last sum below the number,
/// the last choice; `is_masked`: the last that has a probability.
at::Tensor categorical_sample(const at::Tensor& log_probs, const at::Tensor& uniform, bool is_masked = false);

/// The most likely choice, the first of equals: [N,K] f32.
at::Tensor categorical_mode(const at::Tensor& log_probs);

/// log-probability of the actions, [N,K]; `is_masked`: -inf of those that masked_logits() left out.
/// Errors: throws c10::Error on an index that is not a choice.
at::Tensor categorical_logp(const at::Tensor& log_probs, const at::Tensor& action, bool is_masked = false);

/// -sum_c p log p, [N,K].
at::Tensor categorical_entropy(const at::Tensor& log_probs);

}  // namespace troupe::model
