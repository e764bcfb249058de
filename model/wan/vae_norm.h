#pragma once

#include <vector>

#include "configs/model_config.h"

namespace troupe::model {

/// Per-channel constants of the latents: z = (mean - M) * (1/S), and back z / (1/S) + M. They are code constants of the
/// reference, not tensors of a checkpoint. At use both M and 1/S (computed in f32) are cast to the latents' dtype.
struct VaeNorm {
  std::vector<float> mean;  ///< M, one per latent channel
  std::vector<float> std;   ///< S, one per latent channel

  /// 1/S in f32.
  std::vector<float> inverse_std() const;
};

/// The published constants of VAE 2.1 (wan21, 16 channels) and VAE 2.2 (wan22, 48 channels); for any other number of
/// channels, which no published VAE has, M = 0 and S = 1.
VaeNorm vae_norm(const LatentCodecConfig& config);

}  // namespace troupe::model
