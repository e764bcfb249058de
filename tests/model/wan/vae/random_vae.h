#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <numeric>
#include <vector>

#include "model/loss/flow_matching.h"
#include "model/wan/frozen_params.h"
#include "model/wan/vae/vae_codec.h"
#include "model/wan/vae_params.h"
#include "tests/support/visible.h"

namespace troupe::testing {

/// A small VAE of either kind. decoder_dim is odd where a width may be.
inline LatentCodecConfig small_vae(const std::string& type) {
  LatentCodecConfig config;
  config.type = type;
  config.channels = 6;
  config.stride_t = 4;
  config.stride_hw = type == "wan22" ? 16 : 8;
  config.encoder_dim = 4;
  config.decoder_dim = 5;
  return config;
}

inline FrozenParams random_vae(const LatentCodecConfig& config, std::uint64_t seed = 7) {
  return FrozenParams::random(vae_params(config), seed, "vae.");
}

/// Constants that differ between channels and from one and zero.
inline VaeNorm some_norm(const LatentCodecConfig& config) {
  VaeNorm norm;
  for (std::int64_t c = 0; c < config.channels; ++c) {
    norm.mean.push_back(0.3F - 0.1F * static_cast<float>(c));
    norm.std.push_back(0.5F + 0.2F * static_cast<float>(c));
  }
  return norm;
}

/// Normal values, the same for equal arguments; samples differ.
inline at::Tensor noise_of(std::uint64_t seed, std::int64_t batch, const std::vector<std::int64_t>& shape) {
  std::vector<std::uint64_t> positions(static_cast<std::size_t>(batch));
  std::iota(positions.begin(), positions.end(), 0);
  return keyed_noise(seed, 0, positions, shape);
}

/// Values in (-1, 1).
inline at::Tensor noise_video(std::int64_t batch, std::int64_t frames, std::int64_t height, std::int64_t width) {
  return noise_of(11, batch, {3, frames, height, width}).tanh();
}

inline at::Tensor noise_latents(const LatentCodecConfig& config, std::int64_t batch, std::int64_t frames,
                                std::int64_t height, std::int64_t width) {
  return noise_of(12, batch, {config.channels, frames, height, width});
}

}  // namespace troupe::testing
