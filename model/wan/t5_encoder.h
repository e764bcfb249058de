#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "configs/model_config.h"
#include "model/shard/network.h"

namespace troupe::model {

// UMT5 encoder (arXiv:2304.09151, T5 1.1's architecture): pre-norm transformer blocks, no biases in linears, unscaled
// attention, a relative position bias of its own in every block, gated feed-forward layers. Functions over named
// parameters; run under no gradient.

/// Names and shapes as in Wan's checkpoint, without a prefix. Initial values as T5 starts: standard deviation
/// 1 for embeddings, (d d_head)^-1/2 for q, d^-1/2 for k, v, gate and fc1, d_attn^-1/2 for o, d_ff^-1/2 for fc2,
/// (2 buckets heads)^-1/2 for the position bias.
std::vector<ParamSpec> t5_params(const TextEncoderConfig& config);

/// Bucket of relative positions key - query, any shape, i64: bidirectional, exact below a quarter of the buckets, then
/// logarithmic up to distance 128.
at::Tensor t5_position_buckets(const at::Tensor& relative, std::int64_t num_buckets);

/// 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))); in bf16 every operation rounds, as in the reference.
at::Tensor t5_gelu(const at::Tensor& x);

/// Hidden states [B, L, d] of ids i64 [B, L]. Keys whose mask (i64 or bool [B, L]) is zero are not seen; rows of real
/// tokens do not depend on what stands in the padding.
/// Errors: throws c10::Error on a shape mismatch or an id outside the vocabulary.
at::Tensor t5_encode(const TextEncoderConfig& config, const ParamView& params, const at::Tensor& ids,
                     const at::Tensor& mask);

/// What is zeroed behind a prompt (model.text_encoder.tail): from the sample's own length, or from the batch's shortest
/// as the reference does.
enum class TailMode : std::uint8_t { per_sample, batch_min };

/// Zeroes hidden [B, L, d] at and behind the length that the mask's sum gives.
at::Tensor zero_tail(const at::Tensor& hidden, const at::Tensor& mask, TailMode mode);

}  // namespace troupe::model
