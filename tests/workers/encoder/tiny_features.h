#pragma once

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <vector>

#include "configs/job_config.h"
#include "model/shard/network.h"
#include "model/wan/batch_keys.h"

namespace troupe::workers {

/// A job whose encoders are a few kilobytes: canvases of 32 x 64, prompts of at most 64 bytes, no random crop or
/// jitter.
inline JobConfig tiny_features_job() {
  JobConfig job;
  job.job.seed = 7;
  job.model.text_encoder = {.vocab = 259,
                            .dim = 16,
                            .dim_attn = 16,
                            .dim_ff = 32,
                            .num_heads = 2,
                            .num_layers = 1,
                            .num_buckets = 32,
                            .max_length = 64,
                            .tokenizer = "",
                            .tail = "per_sample"};
  job.model.image_encoder = {.image_size = 28,
                             .patch_size = 14,
                             .dim = 16,
                             .mlp_dim = 32,
                             .num_heads = 2,
                             .num_layers = 2,
                             .head_dim_out = 16};
  job.model.codec.type = "dct";
  job.model.codec.channels = 12;
  job.model.target_height = 32;
  job.model.target_width = 64;
  job.data.image.crop = 1;
  job.data.image.brightness = job.data.image.contrast = job.data.image.saturation = job.data.image.hue = 0;
  return job;
}

/// Collated samples whose frames and prompts depend on `first` + their place; 9 frames of 32 x 64.
inline Batch tiny_samples(std::int64_t first, std::int64_t count) {
  namespace key = batch_keys;
  Batch batch;
  batch[key::kImages] = at::zeros({count, 9, 32, 64, 3}, at::TensorOptions().dtype(at::kByte));
  batch[key::kText] = at::zeros({count, 64}, at::TensorOptions().dtype(at::kLong));
  batch[key::kTextMask] = at::zeros({count, 64}, at::TensorOptions().dtype(at::kLong));
  for (std::int64_t b = 0; b < count; ++b) {
    const std::int64_t n = first + b, length = 5 + n % 7;
    batch[key::kImages][b].copy_((at::arange(9 * 32 * 64 * 3).mul(n + 3).remainder(251)).reshape({9, 32, 64, 3}));
    batch[key::kText][b].narrow(0, 0, length).copy_(at::arange(length) + 40 + n);
    batch[key::kTextMask][b].narrow(0, 0, length).fill_(1);
  }
  batch[key::kState] = at::rand({count, 4, 3});
  batch[key::kAction] = at::rand({count, 8, 3});
  return batch;
}

inline Batch one_of(const Batch& batch, std::int64_t b) {
  Batch one;
  for (const auto& [name, tensor] : batch) one[name] = tensor.narrow(0, b, 1).contiguous();
  return one;
}

}  // namespace troupe::workers
