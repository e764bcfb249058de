#pragma once

#include <c10/core/ScalarType.h>

#include "model/policy/policy_shape.h"

namespace troupe::model {

/// Of the tensors [N,H,W,C] that hold one camera's images: u8 for colours; f32 of depth, in metres. rl_keys names them.
constexpr at::ScalarType image_dtype(const PolicyShape::Image& image) {
  return image.is_depth ? at::kFloat : at::kByte;
}

}  // namespace troupe::model
