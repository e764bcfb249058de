#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>

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

/// log-probability of the actions, [N,K]; `is_masked`: -inf of those that masked_logits() left out.
/// Errors: throws c10::Error on an index that is not a choice.
at::Tensor categorical_logp(const at::Tensor& log_probs, const at::Tensor& action, bool is_masked = false);

/// -sum_c p log p, [N,K].
at::Tensor categorical_entropy(const at::Tensor& log_probs);

// The same of one action in plain memory, C choices.

/// log softmax of masked_logits, into `log_probs`; `mask` is null where every choice is allowed.
void log_softmax_choices(const float* logits, const float* mask, std::span<float> log_probs);

/// By the inverse of the cumulative distribution, whose sums are f64: the first choice whose cumulative probability
/// exceeds `uniform`, a number in [0, 1). Where rounding leaves the last sum below it, the last that has a probability.
std::int64_t drawn_choice(std::span<const float> log_probs, float uniform);

/// The first of the likeliest.
std::int64_t likeliest_choice(std::span<const float> log_probs);

}  // namespace troupe::model
