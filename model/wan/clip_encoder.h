#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "configs/model_config.h"
#include "model/shard/network.h"

namespace troupe::model {

// CLIP's visual transformer (XLM-RoBERTa CLIP ViT-H/14, arXiv:2103.00020), all transformer blocks but the last and no
// final norm. A transformer block is pre-norm, its feed-forward layer has the exact GELU, attention is scaled by
// 1/sqrt(head size), layer norms have eps 1e-5:
//     x = x + proj(attention(LN1 x)),   x = x + fc2(GELU(fc1(LN2 x)))
// Functions over named parameters; run under no gradient. Computed in the parameters' dtype.

/// Names and shapes as in Wan's checkpoint, without a prefix: log_scale, visual.*; the last transformer block,
/// post_norm and head are there for the checkpoint's sake. Initial values: Xavier-uniform linears, N(0, 1/dim)
/// embeddings and head, patches uniform.
std::vector<ParamSpec> clip_params(const ImageEncoderConfig& config);

/// Bicubic resize (a = -0.75, half-pixel centres, no antialias, overshoot kept) of images [B, 3, H, W] to the square.
at::Tensor clip_resize(const ImageEncoderConfig& config, const at::Tensor& images);

/// CLIP's colour normalisation of images [B, 3, H, W] in [-1, 1]: (x/2 + 1/2 - mean_c) / std_c with CLIP's constants
/// mean (0.4815, 0.4578, 0.4082) and std (0.2686, 0.2613, 0.2758).
at::Tensor clip_normalise(const at::Tensor& images);

/// Features [B, 1 + patches, dim], class token first, of images [B, 3, H, W] in [-1, 1] of any size.
at::Tensor clip_encode(const ImageEncoderConfig& config, const ParamView& params, const at::Tensor& images);

}  // namespace troupe::model
