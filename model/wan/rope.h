#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "model/wan/sequence_layout.h"

namespace troupe::model {

/// Cosines and sines of every token's rotation, [N, dh/2], for rms_norm_rotated (kernels/rms_norm.h). Immutable once
/// made.
struct RopeTables {
  at::Tensor cos;
  at::Tensor sin;
};

/// Rotations of the layout's tokens in sequence order (arXiv:2104.09864): video by (frame, row, column), actions by
/// their place in the window, states by theirs; each count starts at zero. Pairs are interleaved, (x[2j], x[2j+1]); the
/// angle of position p is p * 10000^(-2j/m). With dh = head_dim and s = 2 (dh / 6), video splits dh into m = dh - 2 s
/// of the frame, s of the row and s of the column; actions and states have m = dh. Angles are computed in f64 and
/// stored as `dtype`. Errors: throws c10::Error when head_dim is odd.
RopeTables make_rope_tables(const SequenceLayout& layout, std::int64_t head_dim, at::ScalarType dtype);

}  // namespace troupe::model
