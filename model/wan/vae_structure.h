#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "configs/model_config.h"

namespace troupe::model {

// The layers of Wan's causal VAEs 2.1 and 2.2 in the order they run, as data: the list of
// parameters (vae_params.h) and the computation (vae/vae_blocks.h) both read it, so they cannot disagree.

/// One layer of the encoder or decoder.
struct VaeLayer {
  enum class Kind : std::uint8_t {
    conv,        ///< causal 3x3x3 convolution
    residual,    ///< norm, SiLU, conv, norm, SiLU, conv; plus the input (through a 1x1x1 convolution: in != out)
    attention,   ///< over the positions of one frame
    down_space,  ///< height and width halved
    down_both,   ///< the same, then time halved but for frame 0
    up_space,    ///< height and width doubled; in != out halves the channels
    up_both,     ///< frames after the first doubled, then the same
    head,        ///< norm, SiLU, causal 3x3x3 convolution
    down_unit,   ///< `layers`, plus the unit's input averaged over blocks (VAE 2.2)
    up_unit,     ///< `layers`, plus the unit's input repeated over blocks when `space` is 2 (VAE 2.2)
  };
  Kind kind = Kind::conv;
  std::string name;  ///< of its tensors, without a trailing dot: "encoder.downsamples.0.downsamples.1"
  std::int64_t in = 0;
  std::int64_t out = 0;
  std::int64_t time = 1;         ///< units: frames per block of the shortcut, 1 or 2
  std::int64_t space = 1;        ///< units: rows and columns per block of the shortcut, 1 or 2
  std::vector<VaeLayer> layers;  ///< units: what they run
};

/// Sides of the squares of pixels that become channels before the encoder and after the decoder: 2 in VAE 2.2, else 1.
std::int64_t vae_pixel_block(const LatentCodecConfig& config);

/// Layers from pixels (after the space-to-depth of 2.2) to 2 * channels moments, and from channels back to pixels. The
/// 1x1x1 convolutions conv1 and conv2 beside the latents are in neither.
std::vector<VaeLayer> vae_encoder_layers(const LatentCodecConfig& config);
std::vector<VaeLayer> vae_decoder_layers(const LatentCodecConfig& config);

}  // namespace troupe::model
