#pragma once

#include <ATen/core/Tensor.h>

#include "model/loss/policy_gradient_loss.h"
#include "model/shard/unit_tape.h"

namespace troupe {

/// Where ppo_gradient writes d(weight * loss), each shaped like its input; `value` is undefined without a critic.
struct PpoGradientTargets {
  at::Tensor logp, entropy, value;
};

/// policy_gradient_loss with ActorLoss::ppo and its gradient in one pass over the numbers, by hand:
///     dL/dlogp = -adv ratio where the free branch of the clip is taken, the log ratio is not clamped and the dual clip not reached; else 0
///     dL_V/dV  = -l'(R - V), or of the clipped value -l'(R - V_clip) while V is inside the clip; the larger error's
///     dH       = -entropy_bonus
/// each times weight, policy_weight or value_coef, and what its cell counts (aggregation.h). Loss and metrics as policy_gradient_loss.
///
/// Shapes: as PolicyGradientInputs, f32 contiguous on the CPU, mask bool; every number finite; entropy [N,L]; no reference_logp.
/// Errors: throws c10::Error on shapes that do not fit.
MicroResult ppo_gradient(const PolicyGradientInputs& inputs, const PolicyGradientOptions& options, double weight,
                         const PpoGradientTargets& targets);

}  // namespace troupe
