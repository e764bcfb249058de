#pragma once

#include <ATen/core/Tensor.h>

#include "model/loss/policy_gradient_loss.h"
#include "model/shard/unit_tape.h"

namespace troupe::model {

/// Where ppo_gradient writes d(weight * loss), each shaped like its input; `value` is undefined without a critic.
struct PpoGradientTargets {
  at::Tensor logp, entropy, value;
};

/// The tensors that are defined, each contiguous: a minibatch may be cut from larger ones. What is contiguous already
/// stays as it is.
void make_contiguous(PolicyGradientInputs& inputs);

/// Whether ppo_gradient takes these inputs, with contiguous tensors, and says what policy_gradient_loss and autograd
/// say of them: PPO's clipped loss on the CPU in f32, nothing but finite numbers, an entropy for every log-probability,
/// no divergence from a reference, not parity.
bool has_ppo_gradient(const PolicyGradientInputs& inputs, const PolicyGradientOptions& options);

/// policy_gradient_loss with ActorLoss::ppo and its manual backward in one pass over the numbers:
///     dL/dlogp = -adv ratio where the free branch of the clip is taken, the log ratio is not clamped and the dual clip
///                not reached; else 0
///     dL_V/dV  = -l'(R - V), or of the clipped value -l'(R - V_clip) while V is inside the clip; the larger error's
///     dH       = -entropy_bonus
/// each times weight, policy_weight or value_coef, and what its cell counts (aggregation.h). Loss and metrics as
/// policy_gradient_loss.
///
/// Shapes: as PolicyGradientInputs, f32 contiguous on the CPU, mask bool; has_ppo_gradient of them holds.
/// Errors: throws c10::Error on shapes that do not fit.
MicroResult ppo_gradient(const PolicyGradientInputs& inputs, const PolicyGradientOptions& options, double weight,
                         const PpoGradientTargets& targets);

}  // namespace troupe::model
