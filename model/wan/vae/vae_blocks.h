#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "model/wan/vae/vae_pass.h"
#include "model/wan/vae_structure.h"

namespace troupe::model {

// The layers of Wan's VAEs (arXiv:2503.20314) on activations [B, T, H, W, C], contiguous; VaeLayer::Kind says what each
// computes. No gradients.

/// Runs one layer. A pass that starts holds frame 0 and, where time is halved, an odd number of frames; a later pass
/// holds whole groups. Updates the pass's cache and still_frames.
/// Errors: throws c10::Error on a shape mismatch or a missing parameter.
at::Tensor run_layer(const VaeLayer& layer, const at::Tensor& x, VaePass& pass);

/// Averages over blocks of `time` frames, `space` rows and `space` columns (VAE 2.2's shortcut down): a block's pixels
/// become channels ((c*time + t)*space + row)*space + column, of which every consecutive in*time*space^2/out are
/// averaged. When the number of frames is no multiple of `time`, zero frames stand before the first.
at::Tensor average_blocks(const at::Tensor& x, std::int64_t out, std::int64_t time, std::int64_t space);

/// The way back (VAE 2.2's shortcut up): every channel repeated out*time*space^2/in times, then spread over a block of
/// pixels in the same order. `starts` drops the time-1 frames before frame 0.
at::Tensor repeat_blocks(const at::Tensor& x, std::int64_t out, std::int64_t time, std::int64_t space, bool starts);

/// Pixels [B, 3, T, H, W] as activations [B, T, H/p, W/p, 3*p*p], channel c*p*p + column*p + row; and back.
at::Tensor pixels_to_channels(const at::Tensor& video, std::int64_t block);
at::Tensor channels_to_pixels(const at::Tensor& x, std::int64_t block);

}  // namespace troupe::model
