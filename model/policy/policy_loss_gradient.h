#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

#include "model/loss/policy_gradient_loss.h"
#include "model/policy/ppo_gradient.h"
#include "model/shard/unit_tape.h"

namespace troupe::model {

/// policy_gradient_loss together with its gradient with respect to log-probabilities, entropies and values. PPO's
/// clipped loss of a CPU micro-batch, the usual one, has a manual backward (PpoGradient); any other (decoupled,
/// V-trace, with a divergence from a reference, parity, rows that are not finite) is differentiated by autograd over
/// these three small tensors. Same numbers up to rounding. Two threads may call actor() and critic(); otherwise not
/// thread-safe.
class PolicyLossGradient {
 public:
  /// Tensors that backward() of the networks starts from: d(weight * loss). f32, contiguous, valid until the next
  /// begin().
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

  /// Begins a micro-batch of stored numbers: logp, entropy and value of `inputs` are not read.
  void begin(PolicyGradientInputs inputs, double weight);
  /// Writes the gradients of log-probabilities and entropies [rows,L], which carry no graph, and returns true; or
  /// returns false, and by_autograd() has to write them.
  bool actor(const at::Tensor& logp, const at::Tensor& entropy);
  /// Likewise of values [rows,V].
  bool critic(const at::Tensor& value);
  /// Loss and metrics where actor() and critic() wrote all gradients; else nothing.
  std::optional<MicroResult> result() const;
  /// Writes all gradients of what actor() and critic() were given.
  MicroResult by_autograd();

  const Gradients& gradients() const noexcept { return gradients_; }

 private:
  const PolicyGradientOptions options_;
  Gradients gradients_;
  PpoGradient ppo_;
  PolicyGradientInputs inputs_;
  double weight_ = 1;
  bool is_ppo_ = false, has_actor_ = false, has_critic_ = false;
};

}  // namespace troupe::model
