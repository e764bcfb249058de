#pragma once

#include <ATen/core/Tensor.h>

#include "model/wan/vae/vae_network.h"

namespace troupe::model {

/// Encodes a video as it comes: frame 0 first, then groups of four frames. The latents of all pushes, joined along
/// time, are those of the whole video (to rounding); what has been given out never changes.
///
/// One stream serves one batch of videos in step. Not thread-safe; the network outlives it.
class VaeEncodeStream {
 public:
  explicit VaeEncodeStream(const VaeNetwork& network, NormRounding rounding = NormRounding::every_step)
      : network_(network), rounding_(rounding) {}

  /// Forgets all frames: the next push is frame 0 again.
  void reset() { cache_ = {}; }
  /// Latents [B, C, F, h, w] of the next frames [B, 3, T, H, W] in [-1, 1]: T = 1 + 4n in the first push, 4n in later
  /// ones. In the network's dtype.
  /// Errors: throws c10::Error for another T, or for another B, H or W than before; the stream stays as it was.
  at::Tensor push(const at::Tensor& video);
  /// Bytes of the frames that the layers remember.
  std::int64_t bytes() const;

 private:
  const VaeNetwork& network_;
  NormRounding rounding_;
  VaeCache cache_;
};

/// Decodes latents as they come, any number of latent frames at a time: the first of all gives one frame of video,
/// every other four. The same promises as VaeEncodeStream's.
class VaeDecodeStream {
 public:
  explicit VaeDecodeStream(const VaeNetwork& network) : network_(network) {}

  void reset() { cache_ = {}; }
  /// Video [B, 3, T, H, W], not clamped, of the next latents [B, C, F, h, w]; T is 4F, in the first push 4F - 3.
  /// Errors: throws c10::Error for another B, h or w than before; the stream stays as it was.
  at::Tensor push(const at::Tensor& latents);
  std::int64_t bytes() const;

 private:
  const VaeNetwork& network_;
  VaeCache cache_;
};

}  // namespace troupe::model
