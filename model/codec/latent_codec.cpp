#include "model/codec/latent_codec.h"

#include <fmt/format.h>

#include "model/codec/dct_codec.h"

namespace troupe {

Result<std::unique_ptr<LatentCodec>> make_latent_codec(const LatentCodecConfig& config) {
  if (config.type != "dct") {
    return Error{Errc::invalid_argument, fmt::format("model.codec.type is \"{}\", want dct", config.type)};
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

}  // namespace troupe
