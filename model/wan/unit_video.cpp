#include "model/wan/unit_video.h"

#include <ATen/ATen.h>

namespace troupe::model {

at::Tensor to_unit_video(const at::Tensor& images, std::int64_t height, std::int64_t width, PixelRounding rounding) {
  TORCH_CHECK(images.dim() == 5 && images.size(4) == 3 && images.scalar_type() == at::kByte, "images ", images.sizes(),
              " of ", images.scalar_type(), " want u8 [B, T, H, W, 3]");
  auto video = images.permute({0, 4, 1, 2, 3}).to(at::kFloat).div(255.0);
  if (rounding == PixelRounding::before_normalise) video = video.to(at::kBFloat16);
  video = video.sub(0.5).div(0.5);
  if (rounding == PixelRounding::after_normalise) video = video.to(at::kBFloat16);
  if (video.size(3) == height && video.size(4) == width) return video.to(at::kFloat).contiguous();
  const auto batch = video.size(0), frames = video.size(2);
  const auto flat = video.transpose(1, 2).reshape({batch * frames, 3, video.size(3), video.size(4)});
  return at::upsample_bilinear2d(flat, {height, width}, /*align_corners=*/false)
      .view({batch, frames, 3, height, width})
      .transpose(1, 2)
      .to(at::kFloat)
      .contiguous();
}

}  // namespace troupe::model
