#include "model/wan/features.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <utility>

#include "base/hash.h"
#include "kernels/threads.h"
#include "model/wan/batch_keys.h"
#include "model/wan/clip_encoder.h"
#include "model/wan/dit_parts.h"
#include "model/wan/t5_encoder.h"

namespace troupe::model {
namespace {

namespace key = batch_keys;

constexpr std::int64_t kMaskChannels = 4;       // of the first-frame input: 1 in latent frame 0, else 0
constexpr std::int64_t kLengthStep = 16;        // new prompts are padded to a multiple of this many tokens
constexpr std::int64_t kTokensTogether = 4096;  // of new prompts encoded in one call, padding included

/// Where the cache keeps a prompt of these real ids (i64 [L], contiguous).
std::string key_of(const at::Tensor& ids) {
  const auto* data = reinterpret_cast<const std::byte*>(ids.data_ptr<std::int64_t>());
  return xxh3_128_hex({data, static_cast<std::size_t>(ids.numel()) * sizeof(std::int64_t)});
}

}  // namespace

at::Tensor TextFeatureCache::find(const std::string& key) {
  const auto it = index_.find(key);
  if (it == index_.end()) {
    ++misses_;
    return {};
  }
  ++hits_;
  entries_.splice(entries_.begin(), entries_, it->second);
  return it->second->second;
}

void TextFeatureCache::put(const std::string& key, at::Tensor features) {
  const auto size = static_cast<std::int64_t>(features.nbytes());
  if (size > max_bytes_ || index_.count(key) != 0) return;
  while (bytes_ + size > max_bytes_) {
    bytes_ -= static_cast<std::int64_t>(entries_.back().second.nbytes());
    index_.erase(entries_.back().first);
    entries_.pop_back();
  }
  entries_.emplace_front(key, std::move(features));
  index_[key] = entries_.begin();
  bytes_ += size;
}

FeatureEncoder::FeatureEncoder(ModelConfig config, FrozenParams text, FrozenParams image,
                               std::unique_ptr<LatentCodec> codec, std::int64_t cache_bytes)
    : config_(std::move(config)),
      text_(std::move(text)),
      image_(std::move(image)),
      codec_(std::move(codec)),
      cache_(cache_bytes) {}

Result<std::unique_ptr<FeatureEncoder>> FeatureEncoder::random(const ModelConfig& config, std::uint64_t seed) {
  TROUPE_ASSIGN(auto codec, make_latent_codec(config.codec));
  // the prefixes are those of DreamZero's full checkpoints, without action_head
  return std::make_unique<FeatureEncoder>(
      config, FrozenParams::random(t5_params(config.text_encoder), seed, "text_encoder."),
      FrozenParams::random(clip_params(config.image_encoder), seed, "image_encoder.model."), std::move(codec));
}

at::Tensor FeatureEncoder::encode_text(const at::Tensor& ids, const at::Tensor& mask) {
  TORCH_CHECK(ids.dim() == 2 && ids.scalar_type() == at::kLong && ids.sizes() == mask.sizes(), "text ", ids.sizes(),
              " and its mask ", mask.sizes(), " want i64 [B, L]");
  const c10::NoGradGuard no_grad;
  const auto ids_cpu = ids.cpu().contiguous(), mask_cpu = mask.ne(0).cpu();
  const auto lengths = mask_cpu.to(at::kLong).sum(1);
  std::vector<std::string> keys(static_cast<std::size_t>(ids.size(0)));
  std::map<std::string, at::Tensor> features;  // of this call's prompts, whatever the cache keeps
  std::vector<NewPrompt> missing;
  for (std::int64_t b = 0; b < ids.size(0); ++b) {
    const auto length = lengths[b].item<std::int64_t>();
    TORCH_CHECK(mask_cpu.select(0, b).narrow(0, 0, length).all().item<bool>(), "text_attention_mask of sample ", b,
                " has a hole; real tokens come first");
    if (length == 0) continue;
    auto row = ids_cpu.select(0, b).narrow(0, 0, length);
    auto& key = keys[static_cast<std::size_t>(b)] = key_of(row);
    if (features.count(key) != 0) continue;
    features[key] = cache_.find(key);
    if (!features[key].defined()) missing.push_back({key, std::move(row)});
  }
  encode_missing(std::move(missing), features);

  const auto options = text_.view().tensors().begin()->second.options();
  auto out = at::zeros({ids.size(0), ids.size(1), config_.text_encoder.dim}, options);
  for (std::int64_t b = 0; b < ids.size(0); ++b) {
    const auto& key = keys[static_cast<std::size_t>(b)];
    if (!key.empty()) out.select(0, b).narrow(0, 0, features[key].size(0)).copy_(features[key]);
  }
  if (config_.text_encoder.tail != "batch_min") return out;  // zero behind each prompt already
  return zero_tail(out, mask.to(out.device()), TailMode::batch_min);
}

void FeatureEncoder::encode_missing(std::vector<NewPrompt> missing, std::map<std::string, at::Tensor>& features) {
  // Together go prompts whose lengths round up to the same multiple: few shapes, little padding, and the columns that a
  // prompt is encoded with depend on nothing but itself.
  const auto padded = [](const NewPrompt& prompt) { return (prompt.ids.size(0) + kLengthStep - 1) / kLengthStep; };
  std::stable_sort(missing.begin(), missing.end(),
                   [&](const NewPrompt& a, const NewPrompt& b) { return padded(a) < padded(b); });
  for (std::size_t begin = 0; begin < missing.size();) {
    const auto width = padded(missing[begin]) * kLengthStep;
    const auto most = static_cast<std::size_t>(std::max<std::int64_t>(1, kTokensTogether / width));
    std::size_t end = begin + 1;
    while (end < missing.size() && end - begin < most && padded(missing[end]) * kLengthStep == width) ++end;

    const auto count = static_cast<std::int64_t>(end - begin);
    auto ids = at::zeros({count, width}, at::TensorOptions().dtype(at::kLong)), mask = at::zeros_like(ids);
    for (std::int64_t i = 0; i < count; ++i) {
      const auto& row = missing[begin + static_cast<std::size_t>(i)].ids;
      ids.select(0, i).narrow(0, 0, row.size(0)).copy_(row);
      mask.select(0, i).narrow(0, 0, row.size(0)).fill_(1);
    }
    const auto device = text_.view().tensors().begin()->second.device();
    const auto hidden = t5_encode(config_.text_encoder, text_.view(), ids.to(device), mask.to(device));
    for (std::int64_t i = 0; i < count; ++i) {
      const auto& prompt = missing[begin + static_cast<std::size_t>(i)];
      // a copy, so that a cached prompt does not keep its whole group alive
      const auto own = hidden.select(0, i).narrow(0, 0, prompt.ids.size(0)).clone();
      features[prompt.key] = own;
      cache_.put(prompt.key, own);
    }
    begin = end;
  }
}

at::Tensor FeatureEncoder::encode_image(const at::Tensor& images) const {
  const c10::NoGradGuard no_grad;
  return clip_encode(config_.image_encoder, image_.view(), images);
}

at::Tensor FeatureEncoder::first_frame_channels(const at::Tensor& first_frame, std::int64_t frames) const {
  TORCH_CHECK(first_frame.dim() == 4 && first_frame.size(1) == 3 && frames > 0, "first frame ", first_frame.sizes(),
              " of ", frames, " frames, want [B, 3, H, W] and at least one frame");
  const c10::NoGradGuard no_grad;
  const auto latents = codec_->encode_first_frame(first_frame, frames);
  auto mask =
      at::zeros({latents.size(0), kMaskChannels, latents.size(2), latents.size(3), latents.size(4)}, latents.options());
  mask.narrow(2, 0, 1).fill_(1.0);
  return at::cat({mask, latents}, 1);
}

FeatureEncoder::ImageFeatures FeatureEncoder::encode_images(const at::Tensor& images) const {
  TORCH_CHECK(images.dim() == 5 && images.size(0) > 0, "images ", images.sizes(), ", want [B, T, H, W, 3]");
  std::vector<ImageFeatures> of_samples(static_cast<std::size_t>(images.size(0)));
  kernels::each_part(images.size(0), kernels::num_threads(), [&](std::int64_t sample) {
    of_samples[static_cast<std::size_t>(sample)] = encode_sample(images.narrow(0, sample, 1));
  });
  const auto joined = [&](at::Tensor ImageFeatures::*part) {
    std::vector<at::Tensor> parts;
    for (const auto& sample : of_samples) parts.push_back(sample.*part);
    return parts.size() == 1 || !parts.front().defined() ? parts.front() : at::cat(parts, 0);
  };
  return {joined(&ImageFeatures::clip), joined(&ImageFeatures::latents), joined(&ImageFeatures::first_frame)};
}

FeatureEncoder::ImageFeatures FeatureEncoder::encode_sample(const at::Tensor& images) const {
  const c10::NoGradGuard no_grad;
  const auto video = to_unit_video(images, config_.target_height, config_.target_width);
  ImageFeatures made{encode_image(video.select(2, 0)), codec_->encode(video).contiguous(), {}};
  if (config_.dit.concat_first_frame_latent) made.first_frame = first_frame_channels(video.select(2, 0), video.size(2));
  return made;
}

Batch feature_batch(const Batch& samples, at::Tensor context, const FeatureEncoder::ImageFeatures& features) {
  Batch batch;
  batch[key::kContext] = std::move(context);
  batch[key::kClip] = features.clip;
  batch[key::kCleanLatents] = features.latents;
  if (features.first_frame.defined()) batch[key::kFirstFrame] = features.first_frame;
  for (const char* name : {key::kState, key::kAction, key::kActionMask, key::kHasRealAction}) {
    const auto it = samples.find(name);
    if (it != samples.end()) batch[name] = it->second;
  }
  return batch;
}

Batch FeatureEncoder::encode(const Batch& samples) {
  const ImageFeatures features = encode_images(batch_tensor(samples, key::kImages));
  at::Tensor context = encode_text(batch_tensor(samples, key::kText), batch_tensor(samples, key::kTextMask));
  return feature_batch(samples, std::move(context), features);
}

}  // namespace troupe::model
