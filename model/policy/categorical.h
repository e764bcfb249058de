#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace troupe::model {

// Categorical distributions, one per action of a chunk. Shape legend: N batch rows, K actions of a chunk, C choices.
// `logits` [N,K*C], choice c of action k at k*C + c; actions are indices stored as f32 [N,K], as in a trajectory. f32;
// differentiable by autograd.

/// log softmax over the choices, [N,K,C]: l_c - log sum_j exp(l_j).
at::Tensor categorical_log_probs(const at::Tensor& logits, std::int64_t choices);

/// Indices [N,K] f32 by the inverse of the cumulative distribution: the first choice whose cumulative probability
/// exceeds the uniform number in [0, 1), which has shape [N,K].
at::Tensor categorical_sample(const at::Tensor& log_probs, const at::Tensor& uniform);

/// The most likely choice, the first of equals: [N,K] f32.
at::Tensor categorical_mode(const at::Tensor& log_probs);

/// log-probability of the actions, [N,K].
/// Errors: throws c10::Error on an index that is not a choice.
at::Tensor categorical_logp(const at::Tensor& log_probs, const at::Tensor& action);

/// -sum_c p log p, [N,K].
at::Tensor categorical_entropy(const at::Tensor& log_probs);

}  // namespace troupe::model
