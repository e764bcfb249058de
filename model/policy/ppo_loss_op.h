#pragma once

#include <ATen/core/Tensor.h>

#include "model/loss/policy_gradient_loss.h"

namespace troupe::model {

/// policy_gradient_loss of log-probabilities, entropies and values that lie side by side in `stream` [N, 2L+V], with
/// the manual backward of ppo_gradient.h: one node of autograd's graph in place of the loss's hundred. V is 0 without a
/// critic. Loss and metrics are policy_gradient_loss's up to rounding; d(loss)/d(stream) is found with them, so a loss
/// that is only looked at costs the same.
///
/// Saved for backward: d(loss)/d(stream) [N, 2L+V] alone.
/// `inputs` are the batch's; its logp, entropy and value are not read. Where has_ppo_gradient says no,
/// policy_gradient_loss is called.
/// Errors: throws c10::Error on shapes that do not fit.
PolicyGradientLoss ppo_loss_op(const at::Tensor& stream, std::int64_t logp_width, std::int64_t value_width,
                               PolicyGradientInputs inputs, const PolicyGradientOptions& options);

}  // namespace troupe::model
