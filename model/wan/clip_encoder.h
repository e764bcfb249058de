#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "configs/model_config.h"
#include "model/shard/network.h"

namespace troupe {

// CLIP's visual transformer (dreamzero-model.md 4.3), all blocks but the last and no final norm. Functions over named
// parameters; run under no gradient.

/// Names and shapes as in Wan's checkpoint (7.3), without a prefix: log_scale, visual.*; the last block, post_norm and
/// head are there for the checkpoint's sake. Initial values: Xavier-uniform linears, N(0, 1/dim) embeddings and head,
/// patches uniform.
std::vector<ParamSpec> clip_params(const ImageEncoderConfig& config);

/// Bicubic resize (a = -0.75, half-pixel centres, no antialias, overshoot kept) of images [B, 3, H, W] to the square.
at::Tensor clip_resize(const ImageEncoderConfig& config, const at::Tensor& images);

/// CLIP's colour normalisation of images in [-1, 1].
at::Tensor clip_normalise(const at::Tensor& images);

/// Features [B, 1 + patches, dim], class token first, of images [B, 3, H, W] in [-1, 1] of any size.
at::Tensor clip_encode(const ImageEncoderConfig& config, const ParamView& params, const at::Tensor& images);

}  // namespace troupe
