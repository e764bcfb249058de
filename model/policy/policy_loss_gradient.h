#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <string>

#include "model/loss/policy_gradient_loss.h"
#include "model/shard/unit_tape.h"

namespace troupe::model {

/// policy_gradient_loss together with its gradient with respect to log-probabilities, entropies and values. PPO's
/// clipped loss of a CPU micro-batch, which is the usual one, has a manual backward (ppo_gradient); any other
/// (decoupled, V-trace, with a divergence from a reference, parity, rows that are not finite) is differentiated by
/// autograd over these three small tensors. Same numbers up to rounding. Not thread-safe.
class PolicyLossGradient {
 public:
  /// Tensors that backward() of the networks starts from: d(weight * loss). f32, contiguous, valid until the next run.
  struct Gradients {
    /// [N,L], of the log-probabilities
    at::Tensor logp;
    /// [N,L], of the entropies
    at::Tensor entropy;
    /// [N,V], of the values; undefined without a critic
    at::Tensor value;
  };

  PolicyLossGradient(const PolicyGradientOptions& options, std::int64_t rows, std::int64_t logp_width,
                     std::int64_t value_width);

  /// Of inputs that carry no graph: logp and entropy [rows,L], value [rows,V] if there is a critic.
  MicroResult run(const PolicyGradientInputs& inputs, double weight);
  const Gradients& gradients() const noexcept { return gradients_; }

 private:
  MicroResult run_by_autograd(const PolicyGradientInputs& inputs, double weight);

  const PolicyGradientOptions options_;
  Gradients gradients_;
};

}  // namespace troupe::model
