#pragma once

#include <ATen/core/Tensor.h>

namespace troupe::model {

// Which control steps of a rollout epoch count when every environment plays one episode (no auto-reset). Shape legend:
// T policy calls, B environments, K actions in a chunk. Flag row 0 is the state before the first chunk; row t + 1 is
// what chunk t reported.

/// A mask and how many steps of each environment it keeps.
struct LossMask {
  at::Tensor mask;     ///< bool [T,B,K] or [T,B,1]
  at::Tensor n_valid;  ///< i64, shape of `mask`: valid control steps of the environment's episode, broadcast
};

/// mask_s = (no done among flags 0 .. s), over the T*K + 1 last flags: the step that is the first done counts, later
/// ones do not.
/// Shapes: dones [T+1,B,K], bool or u8. Errors: throws c10::Error on another shape.
LossMask make_loss_mask(const at::Tensor& dones_T1BK);

/// The mask of whole chunks: a chunk counts when any of its steps does. n_valid still counts control steps.
LossMask to_chunk_mask(const LossMask& actions);

}  // namespace troupe::model
