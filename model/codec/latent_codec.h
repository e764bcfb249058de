#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>

#include "base/result.h"
#include "configs/model_config.h"

namespace troupe::model {

/// Pixels to latents and back. Frozen: no gradients. Thread-safe after construction; calls do not change it.
class LatentCodec {
 public:
  virtual ~LatentCodec() = default;

  /// Latents [B, C, F, h, w] of video [B, 3, T, H, W] in [-1, 1]; F = 1 + (T-1)/stride_t, frame 0 alone, then groups of
  /// stride_t frames; frames that do not fill a group are left out, as Wan's VAE does. f32 in, f32 out.
  /// Errors: throws c10::Error when H or W is no multiple of stride_hw.
  virtual at::Tensor encode(const at::Tensor& video) const = 0;

  /// Latents of `frames` frames of which the first is `image` [B, 3, H, W] and the others are mid-grey (zero), as a
  /// model that is shown its first frame wants them. What encode() gives for that video, except where a codec rounds
  /// reduced precision otherwise.
  virtual at::Tensor encode_first_frame(const at::Tensor& image, std::int64_t frames) const;

  /// Video [B, 3, 1 + (F-1)*stride_t, h*stride_hw, w*stride_hw]. Not clamped to [-1, 1], so that encode(decode(z)) is
  /// z.
  virtual at::Tensor decode(const at::Tensor& latents) const = 0;

  virtual std::int64_t channels() const = 0;
  virtual std::int64_t stride_t() const = 0;
  virtual std::int64_t stride_hw() const = 0;
  /// Bytes of weights and tables.
  virtual std::int64_t bytes() const = 0;
};

/// The codec of type dct. invalid_argument when it keeps more channels than a block has coefficients, and for wan21 and
/// wan22, which have weights: make_vae_codec (model/wan/vae/vae_codec.h) makes those.
Result<std::unique_ptr<LatentCodec>> make_latent_codec(const LatentCodecConfig& config);

}  // namespace troupe::model
