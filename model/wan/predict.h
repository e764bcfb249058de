#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>

#include "base/result.h"
#include "model/shard/network.h"

namespace troupe::model {

/// Predicted latents [B, C, F, h, w] and actions [B, A, D].
struct Prediction {
  at::Tensor video;
  at::Tensor actions;
};

/// One evaluation of the whole network without gradients, such as the engine's forward.
using ForwardFn = std::function<Result<Outputs>(const Batch&)>;

/// Denoises every block at once with the training forward: block k sees the clean latents of the blocks before it, its
/// own state, text and first frame, never its own clean latents. Euler steps of the probability flow over `steps`
/// evenly spaced ids of the training schedule (shift 5), all frames and actions at the same sigma:
///     x <- x + (sigma_next - sigma) v,   the last sigma_next is 0
///
/// `conditioning` is a batch with clean_latents, state, context, clip (and first_frame); its noisy tensors, ids and
/// targets, if any, are not read. `video_noise` like clean_latents, `action_noise` [B, A, D]: standard normal
/// (keyed_noise).
/// Errors: invalid_argument for steps outside 1..1000, a missing or mismatched tensor, latents with an odd side; what
/// `forward` returns otherwise.
Result<Prediction> predict(const Batch& conditioning, const at::Tensor& video_noise, const at::Tensor& action_noise,
                           std::int64_t steps, const ForwardFn& forward);

}  // namespace troupe::model
