#pragma once

#include <cstdint>

#include "configs/data_config.h"
#include "configs/model_config.h"

namespace troupe::model {

/// Size and work of the frozen encoders and the codec (FeatureEncoder), for placement's ModelCost and for accounts of
/// executed work. A multiply-add counts as 2 FLOPs; per sample, forward only.
struct EncoderCost {
  /// of parameters, constants and tables: what FeatureEncoder::bytes() will be
  std::int64_t bytes = 0;
  /// the codec's share of `bytes`
  std::int64_t codec_bytes = 0;
  /// of a prompt of max_length tokens that the cache lacks
  double text_flops = 0;
  /// of one image, all blocks but the last
  double image_flops = 0;
  /// of one clip from pixels to latents; first-frame channels not counted
  double codec_flops = 0;
  double flops() const { return text_flops + image_flops + codec_flops; }
};

/// `bytes_per_element` of the encoders: 4 for fp32, 2 for bf16. The tables of codec dct are always f32.
EncoderCost encoder_cost(const ModelConfig& config, const WindowConfig& window, std::int64_t bytes_per_element);

}  // namespace troupe::model
