#pragma once

#include <c10/core/ScalarType.h>

#include "model/policy/policy_shape.h"

namespace troupe {

/// Of the tensors [N,H,W,C] that hold a picture: u8, or f32 of depth.
constexpr at::ScalarType picture_dtype(const PolicyShape::Image& image) {
  return image.is_depth ? at::kFloat : at::kByte;
}

}  // namespace troupe
