#pragma once

#include <cstdint>

#include "configs/model_config.h"

namespace troupe::workers {

/// A size of a network and its name in config.json of a DreamZero folder: gear_config.cpp reads by these tables,
/// gear_config_write.cpp writes by them.
template <class Config>
struct GearSize {
  const char* name;
  std::int64_t Config::*value;
};

/// Of diffusion_model_cfg; the file has all of them.
inline constexpr GearSize<DitConfig> kGearDitSizes[] = {
    {"dim", &DitConfig::dim},         {"num_heads", &DitConfig::num_heads}, {"num_layers", &DitConfig::num_layers},
    {"ffn_dim", &DitConfig::ffn_dim}, {"in_dim", &DitConfig::in_dim},       {"out_dim", &DitConfig::out_dim}};

/// Of the frozen encoders; where the file has none it is the published network's.
inline constexpr GearSize<TextEncoderConfig> kGearTextSizes[] = {{"vocab", &TextEncoderConfig::vocab},
                                                                 {"dim", &TextEncoderConfig::dim},
                                                                 {"dim_attn", &TextEncoderConfig::dim_attn},
                                                                 {"dim_ffn", &TextEncoderConfig::dim_ff},
                                                                 {"num_heads", &TextEncoderConfig::num_heads},
                                                                 {"num_layers", &TextEncoderConfig::num_layers},
                                                                 {"num_buckets", &TextEncoderConfig::num_buckets}};
inline constexpr GearSize<ImageEncoderConfig> kGearImageSizes[] = {{"image_size", &ImageEncoderConfig::image_size},
                                                                   {"patch_size", &ImageEncoderConfig::patch_size},
                                                                   {"dim", &ImageEncoderConfig::dim},
                                                                   {"mlp_dim", &ImageEncoderConfig::mlp_dim},
                                                                   {"num_heads", &ImageEncoderConfig::num_heads},
                                                                   {"num_layers", &ImageEncoderConfig::num_layers},
                                                                   {"out_dim", &ImageEncoderConfig::head_dim_out}};

}  // namespace troupe::workers
