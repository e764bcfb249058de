#include "workers/encoder/encoded_sample.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "model/wan/batch_keys.h"
#include "model/wan/t5_encoder.h"
#include "workers/encoder/frozen_encoders.h"

namespace troupe::workers {

namespace {

namespace key = batch_keys;

constexpr std::int64_t kMaskChannels = 4;  // of first_frame

/// Puts a contiguous tensor at the start of a field; what it does not fill becomes zero.
Result<void> put(const SampleLayout& item, const char* name, const at::Tensor& tensor, bool whole,
                 std::span<std::byte> out) {
  const TensorField& field = item.field(name);
  const auto value = tensor.cpu().contiguous();
  const auto size = static_cast<std::int64_t>(value.nbytes());
  if (whole ? size != field.bytes : size > field.bytes) {
    return Error{Errc::internal, fmt::format("{} has {} bytes; its field in the item has {}", name, size, field.bytes)};
  }
  std::byte* to = out.data() + field.offset;
  std::memcpy(to, value.const_data_ptr(), static_cast<std::size_t>(size));
  std::fill(to + size, to + field.bytes, std::byte{0});
  return {};
}

at::Tensor as_encoded(const JobConfig& job, const at::Tensor& field) {
  return encoder_dtype(job) == at::kBFloat16 ? field.view(at::kBFloat16) : field;
}

}  // namespace

bool sends_features(const JobConfig& job) { return job.data.features.encode == "encoder"; }

SampleLayout encoded_layout(const SampleLayout& sample, const JobConfig& job) {
  const ModelConfig& m = job.model;
  const bool bf16 = encoder_dtype(job) == at::kBFloat16;
  const FieldType type = bf16 ? FieldType::u8 : FieldType::f32;
  const std::int64_t columns = bf16 ? 2 : 1;
  const std::int64_t frames = sample.field(key::kImages).shape[0];
  const std::int64_t latent_frames = 1 + (frames - 1) / m.codec.stride_t;
  const std::int64_t rows = m.target_height / m.codec.stride_hw, cols = m.target_width / m.codec.stride_hw;
  const std::int64_t side = m.image_encoder.image_size / m.image_encoder.patch_size;
  SampleLayout layout;
  layout.append(key::kContext, type, {m.text_encoder.max_length, columns * m.text_encoder.dim});
  layout.append(key::kClip, type, {1 + side * side, columns * m.image_encoder.dim});
  layout.append(key::kCleanLatents, FieldType::f32, {m.codec.channels, latent_frames, rows, cols});
  if (m.dit.concat_first_frame_latent) {
    layout.append(key::kFirstFrame, FieldType::f32, {kMaskChannels + m.codec.channels, latent_frames, rows, cols});
  }
  for (const TensorField& field : sample.fields) {
    if (field.name != key::kImages) layout.append(field.name, field.type, field.shape);
  }
  return layout;
}

Result<SampleLayout> item_layout(const JobConfig& job) {
  TROUPE_ASSIGN(SampleLayout sample, sample_layout(job.data, job.model));
  return sends_features(job) ? encoded_layout(sample, job) : sample;
}

Result<void> write_encoded(const SampleLayout& sample, std::span<const std::byte> bytes, const SampleLayout& item,
                           const FeatureEncoder::ImageFeatures& features, const at::Tensor& text,
                           std::span<std::byte> out) {
  // the gaps between fields: equal samples give equal bytes
  std::int64_t end = 0;
  for (const TensorField& field : item.fields) {
    std::fill(out.begin() + end, out.begin() + field.offset, std::byte{0});
    end = field.offset + field.bytes;
  }
  std::fill(out.begin() + end, out.end(), std::byte{0});
  TROUPE_TRY(put(item, key::kContext, text, false, out));
  TROUPE_TRY(put(item, key::kClip, features.clip, true, out));
  TROUPE_TRY(put(item, key::kCleanLatents, features.latents, true, out));
  if (features.first_frame.defined()) TROUPE_TRY(put(item, key::kFirstFrame, features.first_frame, true, out));
  for (const TensorField& from : sample.fields) {
    if (from.name == key::kImages) continue;
    const TensorField& to = item.field(from.name);
    std::memcpy(out.data() + to.offset, bytes.data() + from.offset, static_cast<std::size_t>(from.bytes));
  }
  return {};
}

Batch encoded_batch(const JobConfig& job, const Batch& collated) {
  Batch batch;
  batch[key::kContext] = as_encoded(job, collated.at(key::kContext));
  if (job.model.text_encoder.tail == "batch_min") {
    batch[key::kContext] = zero_tail(batch[key::kContext], collated.at(key::kTextMask), TailMode::batch_min);
  }
  batch[key::kClip] = as_encoded(job, collated.at(key::kClip));
  for (const char* name :
       {key::kCleanLatents, key::kFirstFrame, key::kState, key::kAction, key::kActionMask, key::kHasRealAction}) {
    const auto it = collated.find(name);
    if (it != collated.end()) batch[name] = it->second;
  }
  return batch;
}

}  // namespace troupe::workers
