#include "model/wan/features.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <utility>

#include "base/hash.h"
#include "model/wan/batch_keys.h"
#include "model/wan/clip_encoder.h"
#include "model/wan/dit_parts.h"
#include "model/wan/t5_encoder.h"

namespace troupe {
namespace {

namespace key = batch_keys;

constexpr std::int64_t kMaskChannels = 4;  // of the first-frame input: 1 in latent frame 0, else 0

}  // namespace

at::Tensor to_unit_video(const at::Tensor& images, std::int64_t height, std::int64_t width) {
  TORCH_CHECK(images.dim() == 5 && images.size(4) == 3 && images.scalar_type() == at::kByte, "images ", images.sizes(),
              " of ", images.scalar_type(), " want u8 [B, T, H, W, 3]");
  auto video = images.permute({0, 4, 1, 2, 3}).to(at::kFloat).div(255.0).sub(0.5).div(0.5);
  if (video.size(3) == height && video.size(4) == width) return video.contiguous();
  const auto batch = video.size(0), frames = video.size(2);
  const auto flat = video.transpose(1, 2).reshape({batch * frames, 3, video.size(3), video.size(4)});
  return at::upsample_bilinear2d(flat, {height, width}, /*align_corners=*/false)
      .view({batch, frames, 3, height, width})
      .transpose(1, 2)
      .contiguous();
}

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
  const auto ids_cpu = ids.cpu().contiguous(), lengths = mask.ne(0).to(at::kLong).sum(1).cpu();
  const auto width = config_.text_encoder.dim;
  auto out = at::zeros({ids.size(0), ids.size(1), width}, text_.view().tensors().begin()->second.options());
  for (std::int64_t b = 0; b < ids.size(0); ++b) {
    const auto length = lengths[b].item<std::int64_t>();
    if (length == 0) continue;
    TORCH_CHECK(mask.select(0, b).narrow(0, 0, length).ne(0).all().item<bool>(), "text_attention_mask of sample ", b,
                " has a hole; real tokens come first");
    const auto row = ids_cpu.select(0, b).narrow(0, 0, length);
    const auto* data = reinterpret_cast<const std::byte*>(row.data_ptr<std::int64_t>());
    const auto cache_key = xxh3_128_hex({data, static_cast<std::size_t>(length) * sizeof(std::int64_t)});
    auto features = cache_.find(cache_key);
    if (!features.defined()) {
      const auto prompt = row.unsqueeze(0).to(out.device());
      features = t5_encode(config_.text_encoder, text_.view(), prompt, at::ones_like(prompt)).squeeze(0);
      cache_.put(cache_key, features);
    }
    out.select(0, b).narrow(0, 0, length).copy_(features);
  }
  return out;
}

at::Tensor FeatureEncoder::first_frame_channels(const at::Tensor& video) const {
  auto still = at::zeros_like(video);
  still.narrow(2, 0, 1).copy_(video.narrow(2, 0, 1));
  const auto latents = codec_->encode(still);
  auto mask =
      at::zeros({latents.size(0), kMaskChannels, latents.size(2), latents.size(3), latents.size(4)}, latents.options());
  mask.narrow(2, 0, 1).fill_(1.0);
  return at::cat({mask, latents}, 1);
}

Batch FeatureEncoder::encode(const Batch& samples) {
  const c10::NoGradGuard no_grad;
  const auto video = to_unit_video(batch_tensor(samples, key::kImages), config_.target_height, config_.target_width);
  Batch batch;
  batch[key::kContext] = encode_text(batch_tensor(samples, key::kText), batch_tensor(samples, key::kTextMask));
  batch[key::kClip] = clip_encode(config_.image_encoder, image_.view(), video.select(2, 0));
  batch[key::kCleanLatents] = codec_->encode(video).contiguous();
  if (config_.dit.concat_first_frame_latent) batch[key::kFirstFrame] = first_frame_channels(video);
  for (const char* name : {key::kState, key::kAction, key::kActionMask, key::kHasRealAction}) {
    const auto it = samples.find(name);
    if (it != samples.end()) batch[name] = it->second;
  }
  return batch;
}

std::map<std::string, std::string> FeatureEncoder::content_hashes() const {
  return {{"text_encoder", text_.content_hash()}, {"image_encoder", image_.content_hash()}};
}

}  // namespace troupe
