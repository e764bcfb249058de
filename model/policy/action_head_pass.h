#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "model/policy/action_head.h"

namespace troupe::model {

/// ActionHead::density and its manual backward, into memory that is kept. With z = (action - mean) / std:
///     gaussian     d logp / d mean = z / std      d logp / d log_std = z^2 - 1      d entropy / d log_std = 1
///     categorical  d logp_a / d logit_c = [c = a] - p_c      d entropy / d logit_c = -p_c (log p_c + entropy)
/// Sums over rows are f64. Saved by forward: z, or all log-probabilities. Not thread-safe; CPU only.
class ActionHeadPass {
 public:
  ActionHeadPass(const ActionHead& head, std::int64_t rows);

  /// All f32, contiguous: outputs [rows,outputs], action [rows,action_width], mask [rows,C] if ActionHead::is_masked().
  /// logp(), entropy() hold the result until the next call. Errors: throws c10::Error on another shape or dtype of
  /// `action` or `mask`, or an index that is no choice.
  void forward(const ParamView& actor, const at::Tensor& outputs, const at::Tensor& action, const at::Tensor& mask);
  /// [rows,L] f32: log-probabilities of the last forward's actions
  const at::Tensor& logp() const noexcept { return logp_; }
  /// [rows,L] f32: entropies of the last forward's distributions
  const at::Tensor& entropy() const noexcept { return entropy_; }

  /// After forward, from the gradients of logp and entropy, both [rows,L]. Returns that of the outputs, valid until the
  /// next call, and overwrites the head's parameters in `gradients`.
  const at::Tensor& backward(const at::Tensor& d_logp, const at::Tensor& d_entropy, const ParamView& gradients);

 private:
  void forward_gaussian(const ParamView& actor, const float* mean, const float* action);
  /// `mask` is null where every choice is always allowed.
  void forward_categorical(const float* logits, const float* action, const float* mask);
  void backward_gaussian(const float* d_logp, const float* d_entropy, const ParamView& gradients);
  void backward_categorical(const float* d_logp, const float* d_entropy);

  const ActionHead& head_;
  const std::int64_t rows_;
  at::Tensor logp_, entropy_, d_outputs_;
  /// gaussian: (action - mean) / std; categorical: log-probabilities of all choices
  std::vector<float> saved_;
  /// categorical: their exponentials
  std::vector<float> probability_;
  /// gaussian: [K*A], exp(-log_std)
  std::vector<float> inverse_std_;
  /// categorical: [rows,K], the actions as indices
  std::vector<std::int64_t> chosen_;
  std::vector<double> d_log_std_;
};

}  // namespace troupe::model
