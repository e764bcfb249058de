#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace troupe::model {

/// Where pixels are rounded to bf16 on their way to [-1, 1] (docs/vae.md#pixels). A resize happens behind
/// the rounding and rounds its own results once more.
enum class PixelRounding : std::uint8_t {
  none,              ///< f32 throughout
  after_normalise,   ///< training with bf16 encoders: (x/255 - 0.5)/0.5 in f32, then a cast
  before_normalise,  ///< the policy call: x/255 in f32, a cast, then (x - 0.5)/0.5 in bf16
};

/// Pixels u8 [B, T, H, W, 3] as f32 [B, 3, T, height, width] in [-1, 1]: x/255, then (x - 0.5)/0.5, then, only when the
/// size differs, a bilinear resize (half-pixel centres, no antialias). With rounding every value is one that bf16 has.
/// Errors: throws c10::Error for another shape or dtype.
at::Tensor to_unit_video(const at::Tensor& images, std::int64_t height, std::int64_t width,
                         PixelRounding rounding = PixelRounding::none);

}  // namespace troupe::model
