#pragma once

#include <ATen/core/Tensor.h>

#include <memory>

#include "model/loss/policy_gradient_loss.h"
#include "model/shard/unit_tape.h"

namespace troupe::model {

/// The tensors that are defined, each contiguous: a minibatch may be cut from larger ones. What is contiguous already
/// stays as it is.
void make_contiguous(PolicyGradientInputs& inputs);

/// policy_gradient_loss with ActorLoss::ppo and its manual backward, in one pass over the numbers of each network:
///     dL/dlogp = -adv ratio where the free branch of the clip is taken, the log ratio is not clamped and the dual clip
///                not reached; else 0
///     dL_V/dV  = -l'(R - V), or of the clipped value -l'(R - V_clip) while V is inside the clip; the larger error's
///     dH       = -entropy_bonus
/// each times weight, policy_weight or value_coef, and what its cell counts (aggregation.h). Loss and metrics as
/// policy_gradient_loss. Two threads may take the actor's part and the critic's at the same time.
///
/// Shapes: as PolicyGradientInputs, f32 contiguous on the CPU, mask bool. Errors: throws c10::Error on shapes that do
/// not fit.
class PpoGradient {
 public:
  explicit PpoGradient(const PolicyGradientOptions& options);
  ~PpoGradient();

  /// Begins a micro-batch. `in` has its stored numbers, which are kept; its logp, entropy and value are not read.
  /// Returns whether the manual backward covers them: PPO's clipped loss, not parity, no divergence from a reference,
  /// finite f32 numbers on the CPU. All else is for policy_gradient_loss and autograd.
  bool begin(const PolicyGradientInputs& in, double weight);
  /// Writes d(weight * loss) of log-probabilities and entropies [N,L]. Returns false and writes nothing where the
  /// manual backward does not cover them either: one is not finite, not f32 on the CPU, or there are other entropies
  /// than log-probabilities.
  bool actor(const at::Tensor& logp, const at::Tensor& entropy, const at::Tensor& d_logp, const at::Tensor& d_entropy);
  /// Likewise of the values [N,V].
  bool critic(const at::Tensor& value, const at::Tensor& d_value);
  /// Loss and metrics of the parts that were taken since begin().
  MicroResult result() const;

 private:
  struct State;
  void check_cells(const at::Tensor& x) const;

  const PolicyGradientOptions options_;
  const std::unique_ptr<State> state_;
};

}  // namespace troupe::model
