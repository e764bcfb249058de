#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <span>

#include "base/result.h"
#include "configs/job_config.h"
#include "data/sample/sample.h"
#include "model/wan/features.h"

namespace troupe::workers {

/// True when a job's items are encoded samples: data.features.encode encoder.
bool sends_features(const JobConfig& job);

/// The layout of the items that a job's feeders send and its learners take: sample_layout, or encoded_layout of it.
/// Errors: those of sample_layout.
Result<SampleLayout> item_layout(const JobConfig& job);

/// A sample with features in the place of its frames: context [max_length, width], clip [1 + patches, width],
/// clean_latents f32 [C, F, h, w], first_frame f32 [4 + C, F, h, w] where the model concatenates it; then every
/// field of `sample` but images. Context and clip have the encoders' dtype; bf16 is a field of u8 with twice the
/// columns.
SampleLayout encoded_layout(const SampleLayout& sample, const JobConfig& job);

/// Fills an item of layout `item` from a built sample and its features; `text` [L, width] is what the real tokens
/// became. Every byte of `out` is written. Errors: internal, when a feature has another size than its field.
Result<void> write_encoded(const SampleLayout& sample, std::span<const std::byte> bytes, const SampleLayout& item,
                           const FeatureEncoder::ImageFeatures& features, const at::Tensor& text,
                           std::span<std::byte> out);

/// From collated encoded items (each field with a batch dimension in front, text_attention_mask named as in
/// batch_keys.h) to the batch that FeatureEncoder::encode would give.
Batch encoded_batch(const JobConfig& job, const Batch& collated);

}  // namespace troupe::workers
