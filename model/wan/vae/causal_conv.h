#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

#include "model/wan/vae/vae_pass.h"

namespace troupe::model {

// Convolutions and norms of Wan's VAEs. Activations are [B, T, H, W, C], contiguous: channels last is what oneDNN's and
// cuDNN's kernels want, and makes norms over channels and 1x1 convolutions work on rows. Weights keep the checkpoint's
// logical shapes. The dtype of a layer is its parameters' dtype. No gradients.

/// x / max(|x|, 1e-12) * sqrt(C) * gain over the last axis; gain has C elements, any shape. In x's dtype and rounded
/// after every step, or f32 for reduced dtypes when rounding is at_the_end.
at::Tensor channel_norm(const at::Tensor& x, const at::Tensor& gain, NormRounding rounding);

/// Causal convolution over time `name` (kernel [3, k, k], zero padding in space): two frames of history before x, from
/// the cache or zeros. As many frames as x has; up to two more for a still sequence.
at::Tensor causal_conv(const VaePass& pass, const std::string& name, const at::Tensor& x);

/// causal_conv of SiLU of the channel norm with gain `norm` + ".gamma".
at::Tensor norm_silu_conv(const VaePass& pass, const std::string& norm, const std::string& name, const at::Tensor& x);

/// Convolution over time without padding, kernel [3, 1, 1], stride 2: (T - 1) / 2 frames.
at::Tensor halving_time_conv(const VaePass& pass, const std::string& name, const at::Tensor& x);

/// 1x1x1 (or 1x1) convolution `name`: a linear layer over the channels of each position, [B, T, H, W, C] in and out.
at::Tensor point_conv(const VaePass& pass, const std::string& name, const at::Tensor& x);

/// 3x3 convolution of every frame of x [B, T, H, W, C].
at::Tensor frame_conv(const VaePass& pass, const std::string& name, const at::Tensor& x, std::int64_t stride,
                      std::int64_t padding);

/// x with its last frame repeated until there are `frames`; x itself where it has as many.
at::Tensor extend_frames(const at::Tensor& x, std::int64_t frames);

}  // namespace troupe::model
