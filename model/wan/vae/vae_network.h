#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "configs/model_config.h"
#include "model/shard/network.h"
#include "model/wan/vae/vae_pass.h"
#include "model/wan/vae_norm.h"
#include "model/wan/vae_structure.h"

namespace troupe::model {

/// Wan's causal VAE 2.1 or 2.2 over given weights: encoder (mean branch only, nothing is sampled) and decoder.
///
/// Both are causal in time, so a sequence may be given at once or in chunks: with one cache, the results of the chunks
/// joined are those of the whole up to rounding. Immutable after construction: threads may
/// share it, each with its own caches. Computes in `dtype` on the device of the parameters; results are in that dtype.
class VaeNetwork {
 public:
  /// `params` has every tensor of vae_params(config). Weights are kept as copies in `dtype`, laid out for channels-last
  /// convolutions; what is already so is shared. config.type is wan21 or wan22; `norm` has config.channels entries.
  /// Errors: throws c10::Error where that is not so.
  VaeNetwork(LatentCodecConfig config, const ParamView& params, at::ScalarType dtype, const VaeNorm& norm);

  /// Latents [B, C, F, h, w] of video [B, 3, T, H, W] in [-1, 1]. Without a cache or with a fresh one T = 1 + 4n and
  /// F = 1 + n; afterwards T = 4n and F = n. Errors: throws c10::Error for another T, or H or W that no latent covers.
  at::Tensor encode(const at::Tensor& video, VaeCache* cache = nullptr,
                    NormRounding rounding = NormRounding::every_step) const;
  /// The same before the normalisation: the mean itself.
  at::Tensor encode_mean(const at::Tensor& video, VaeCache* cache = nullptr,
                         NormRounding rounding = NormRounding::every_step) const;

  /// Latents of a video of `frames` = 1 + 4n frames: `image` [B, 3, H, W], then zeros. Frames whose input has been
  /// nothing but zeros for as long as a layer looks back are equal, and only one of them is computed.
  at::Tensor encode_still(const at::Tensor& image, std::int64_t frames,
                          NormRounding rounding = NormRounding::every_step) const;

  /// Video [B, 3, T, H, W] of latents [B, C, F, h, w], not clamped. Without a cache or with a fresh one T = 4F - 3,
  /// afterwards T = 4F.
  at::Tensor decode(const at::Tensor& latents, VaeCache* cache = nullptr) const;

  const LatentCodecConfig& config() const { return config_; }
  at::ScalarType dtype() const { return dtype_; }
  const ParamView& params() const { return params_; }
  /// Bytes of weights and constants.
  std::int64_t bytes() const;
  /// Bytes of the widest activation, per pixel frame of one sample H x W.
  std::int64_t widest_encoder_frame(std::int64_t height, std::int64_t width) const;
  std::int64_t widest_decoder_frame(std::int64_t height, std::int64_t width) const;

 private:
  at::Tensor mean_of(const at::Tensor& video, VaePass& pass) const;
  at::Tensor normalised(const at::Tensor& mean) const;
  void check_video(at::IntArrayRef sizes, bool starts) const;

  LatentCodecConfig config_;
  at::ScalarType dtype_;
  std::vector<VaeLayer> encoder_, decoder_;
  ParamView params_;
  at::Tensor mean_, inverse_std_;  // [1, C, 1, 1, 1] in dtype_
};

}  // namespace troupe::model
