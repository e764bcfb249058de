#include "model/codec/latent_codec.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "model/codec/dct_codec.h"

namespace troupe::model {

at::Tensor LatentCodec::encode_first_frame(const at::Tensor& image, std::int64_t frames) const {
  TORCH_CHECK(image.dim() == 4 && frames > 0, "image ", image.sizes(), " in ", frames,
              " frames wants [B, 3, H, W] and at least one frame");
  auto video = image.new_zeros({image.size(0), image.size(1), frames, image.size(2), image.size(3)});
  video.select(2, 0).copy_(image);
  return encode(video);
}

Result<std::unique_ptr<LatentCodec>> make_latent_codec(const LatentCodecConfig& config) {
  if (config.type != "dct") {
    return Error{
        Errc::invalid_argument,
        fmt::format("model.codec.type is \"{}\", which has weights; without them only dct can be made", config.type)};
  }
  // frame 0 is coded alone, so it has the fewest coefficients
  const auto limit = config.stride_hw * config.stride_hw * 3;
  if (config.channels < 1 || config.channels > limit || config.stride_t < 1) {
    return Error{
        Errc::invalid_argument,
        fmt::format("model.codec.channels is {}; a first frame block of {} x {} pixels has 1 to {} coefficients",
                    config.channels, config.stride_hw, config.stride_hw, limit)};
  }
  return std::unique_ptr<LatentCodec>(std::make_unique<DctCodec>(config.channels, config.stride_t, config.stride_hw));
}

}  // namespace troupe::model
