#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "model/wan/sequence_layout.h"

namespace troupe {

/// Cosines and sines of every token's rotation, [N, dh/2]. Immutable once made.
struct RopeTables {
  at::Tensor cos;
  at::Tensor sin;
};

/// Rotations of the layout's tokens in sequence order (dreamzero-model.md 2.2): video by (frame, row, column), actions
/// by their place in the window, states by theirs; each count starts at zero. Angles are computed in f64 and stored as
/// `dtype`. Errors: throws c10::Error when head_dim is odd.
RopeTables make_rope_tables(const SequenceLayout& layout, std::int64_t head_dim, at::ScalarType dtype);

/// Rotates the interleaved pairs (x[2j], x[2j+1]) by the row's angle, in the tables' dtype; the result has x's dtype.
/// Shapes: x [B, N, H, dh]; tables [N, dh/2].
at::Tensor apply_rope(const at::Tensor& x_BNHD, const RopeTables& tables);

}  // namespace troupe
