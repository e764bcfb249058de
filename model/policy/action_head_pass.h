#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "model/policy/action_head.h"

namespace troupe {

/// ActionHead::density and its gradient without autograd, into memory that is kept. Not thread-safe.
class ActionHeadPass {
 public:
  ActionHeadPass(const ActionHead& head, std::int64_t rows);

  /// All f32, contiguous: outputs [rows,outputs], action [rows,action_width]. logp(), entropy() hold the result until the next call.
  void forward(const ParamView& actor, const at::Tensor& outputs, const at::Tensor& action);
  const at::Tensor& logp() const noexcept { return logp_; }        ///< [rows,L]
  const at::Tensor& entropy() const noexcept { return entropy_; }  ///< [rows,L]

  /// After forward, from the gradients of logp and entropy, both [rows,L]. Returns that of the outputs, valid until the next call, and
  /// overwrites the head's parameters in `gradients`.
  const at::Tensor& backward(const at::Tensor& d_logp, const at::Tensor& d_entropy, const ParamView& gradients);

 private:
  void forward_gaussian(const ParamView& actor, const float* mean, const float* action);
  void forward_categorical(const float* logits, const float* action);
  void backward_gaussian(const float* d_logp, const float* d_entropy, const ParamView& gradients);
  void backward_categorical(const float* d_logp, const float* d_entropy);

  const ActionHead& head_;
  const std::int64_t rows_;
  at::Tensor logp_, entropy_, d_outputs_;
  std::vector<float> saved_;        ///< gaussian: (action - mean) / std; categorical: log-probabilities of all choices
  std::vector<float> inverse_std_;  ///< gaussian
  std::vector<std::int64_t> chosen_;  ///< categorical: [rows,K]
  std::vector<double> d_log_std_;
};

}  // namespace troupe
