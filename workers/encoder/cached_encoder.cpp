#include "workers/encoder/cached_encoder.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>

#include <cstring>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "base/log.h"
#include "model/wan/batch_keys.h"
#include "model/wan/dit_parts.h"
#include "model/wan/t5_encoder.h"

namespace troupe::workers {

namespace {

namespace key = batch_keys;

std::span<const std::byte> bytes_of(const at::Tensor& tensor) {
  return {static_cast<const std::byte*>(tensor.const_data_ptr()), static_cast<std::size_t>(tensor.nbytes())};
}

/// A contiguous tensor on the CPU as it is kept.
FeatureTensor to_entry(const at::Tensor& tensor) {
  const auto bytes = bytes_of(tensor);
  return {.dtype = tensor.scalar_type() == at::kBFloat16 ? "BF16" : "F32",
          .shape = tensor.sizes().vec(),
          .bytes = {bytes.begin(), bytes.end()}};
}

at::Tensor to_tensor(const FeatureTensor& entry) {
  at::Tensor tensor =
      at::empty(entry.shape, at::TensorOptions().dtype(entry.dtype == "BF16" ? at::kBFloat16 : at::kFloat));
  std::memcpy(tensor.mutable_data_ptr(), entry.bytes.data(), entry.bytes.size());
  return tensor;
}

at::Tensor stack_batch(const std::vector<at::Tensor>& samples) {
  return samples.empty() || !samples.front().defined() ? at::Tensor() : at::cat(samples, 0);
}

}  // namespace

Result<void> describe_models(FeatureCache& cache, const JobConfig& job, const FeatureModels& models) {
  TROUPE_TRY(cache.describe_model("text", models.text));
  if (job.data.features.keep != "all") return {};
  TROUPE_TRY(cache.describe_model("clip", models.clip));
  return cache.describe_model("latents", models.latents);
}

CachedEncoder::CachedEncoder(const JobConfig& job, std::unique_ptr<FeatureEncoder> encoder, FeatureModels models,
                             std::shared_ptr<FeatureCache> cache, std::int64_t text_memory_bytes)
    : model_(job.model),
      keeps_images_(job.data.features.keep == "all"),
      encoder_(std::move(encoder)),
      models_(std::move(models)),
      cache_(std::move(cache)),
      texts_(cache_ ? text_memory_bytes : 0) {}

Result<std::vector<std::unique_ptr<CachedEncoder>>> CachedEncoder::make_all(const JobConfig& job,
                                                                            const FrozenEncoders& weights,
                                                                            std::int64_t count) {
  const std::string& folder = job.data.features.cache;
  const std::int64_t text_bytes = FeatureEncoder::kDefaultCacheBytes / count;
  std::shared_ptr<FeatureCache> cache;
  FeatureModels models;
  if (!folder.empty()) {
    TROUPE_ASSIGN(cache, FeatureCache::open(folder));
    models = weights.models();
    TROUPE_TRY(describe_models(*cache, job, models));
  }
  std::vector<std::unique_ptr<CachedEncoder>> all;
  for (std::int64_t i = 0; i < count; ++i) {
    // with a cache, texts are kept in memory once: by us, who know those from disk, too
    TROUPE_ASSIGN(auto encoder, weights.encoder(cache ? 0 : text_bytes));
    all.push_back(std::make_unique<CachedEncoder>(job, std::move(encoder), models, cache, text_bytes));
  }
  return all;
}

Result<std::unique_ptr<CachedEncoder>> CachedEncoder::make(const JobConfig& job, const FrozenEncoders& weights) {
  TROUPE_ASSIGN(auto one, make_all(job, weights, 1));
  return std::move(one.front());
}

Result<std::unique_ptr<CachedEncoder>> CachedEncoder::make(const JobConfig& job) {
  TROUPE_ASSIGN(const FrozenEncoders weights, FrozenEncoders::load(job));
  return make(job, weights);
}

void CachedEncoder::store(FeatureKind kind, const FeatureKey& key, const FeatureKey& alias, const at::Tensor& tensor) {
  const auto stored = cache_->put(kind, key, alias, to_entry(tensor.cpu().contiguous()));
  if (stored || store_error_) return;
  store_error_ = stored.error();
  log::warn("feature cache: {}; features are computed and not kept", stored.error().message());
}

std::optional<at::Tensor> CachedEncoder::find(const FeatureKey& key) {
  const auto entry = cache_->find(key);
  if (!entry) return std::nullopt;
  return to_tensor(*entry);
}

bool CachedEncoder::has_text(const at::Tensor& ids) {
  return cache_ && cache_->contains(feature_key(FeatureKind::text, models_.text, bytes_of(ids)));
}

at::Tensor CachedEncoder::encode_text(const at::Tensor& ids) {
  TORCH_CHECK(ids.dim() == 1 && ids.scalar_type() == at::kLong && ids.numel() > 0, "text ids ", ids.sizes(),
              " want i64 [L]");
  const auto row = ids.cpu().contiguous();
  const auto id = feature_key(FeatureKind::text, models_.text, bytes_of(row));
  if (cache_) {
    if (auto known = texts_.find(id.hex()); known.defined()) return known;
    if (auto kept = find(id)) {
      texts_.put(id.hex(), *kept);
      return *kept;
    }
  }
  // one prompt of this length in its batch: nothing behind it, whatever text_encoder.tail says
  const auto padded = row.unsqueeze(0);
  auto features = encoder_->encode_text(padded, at::ones_like(padded))[0].clone();
  if (cache_) {
    store(FeatureKind::text, id, {}, features);
    texts_.put(id.hex(), features);
  }
  return features;
}

CachedEncoder::ImageKeys CachedEncoder::image_keys(const std::string& identity) const {
  return {feature_key(FeatureKind::clip, models_.clip, identity),
          feature_key(FeatureKind::latents, models_.latents, identity),
          feature_key(FeatureKind::first_frame, models_.first_frame, identity)};
}

bool CachedEncoder::has_images(const std::string& identity) {
  if (!cache_ || !keeps_images_ || identity.empty()) return false;
  const ImageKeys keys = image_keys(identity);
  return cache_->contains(keys.clip) && cache_->contains(keys.latents) &&
         (!model_.dit.concat_first_frame_latent || cache_->contains(keys.first_frame));
}

std::optional<CachedEncoder::ImageFeatures> CachedEncoder::find_images(const std::string& identity) {
  if (!has_images(identity)) return std::nullopt;
  const ImageKeys keys = image_keys(identity);
  auto clip = find(keys.clip), latents = find(keys.latents);
  if (!clip || !latents) return std::nullopt;
  ImageFeatures found{clip->unsqueeze(0), latents->unsqueeze(0), {}};
  if (!model_.dit.concat_first_frame_latent) return found;
  auto first = find(keys.first_frame);
  if (!first) return std::nullopt;
  found.first_frame = first->unsqueeze(0);
  return found;
}

CachedEncoder::ImageFeatures CachedEncoder::encode_images(const at::Tensor& images, const std::string& identity) {
  if (!cache_ || !keeps_images_) return encoder_->encode_images(images);
  const auto canvas = images.contiguous();
  const std::string content =
      fmt::format("canvas {} {}", fmt::join(canvas.sizes().slice(1), "x"), xxh3_128_hex(bytes_of(canvas)));
  auto made = find_images(content);
  const bool known = made.has_value();
  if (!made) made = encoder_->encode_images(canvas);
  if (known && identity.empty()) return *made;
  const ImageKeys by_content = image_keys(content);
  const ImageKeys keys = identity.empty() ? by_content : image_keys(identity);
  store(FeatureKind::clip, keys.clip, by_content.clip, made->clip[0]);
  store(FeatureKind::latents, keys.latents, by_content.latents, made->latents[0]);
  if (made->first_frame.defined())
    store(FeatureKind::first_frame, keys.first_frame, by_content.first_frame, made->first_frame[0]);
  return *made;
}

at::Tensor CachedEncoder::encode_texts(const at::Tensor& ids, const at::Tensor& mask) {
  TORCH_CHECK(ids.dim() == 2 && ids.scalar_type() == at::kLong && ids.sizes() == mask.sizes(), "text ", ids.sizes(),
              " and its mask ", mask.sizes(), " want i64 [B, L]");
  at::Tensor context;
  const auto lengths = mask.ne(0).sum(1).cpu();
  for (std::int64_t b = 0; b < ids.size(0); ++b) {
    const auto length = lengths[b].item<std::int64_t>();
    TORCH_CHECK(length > 0 && mask[b].narrow(0, 0, length).ne(0).all().item<bool>(), "text_attention_mask of sample ",
                b, " is empty or has a hole; real tokens come first");
    const auto features = encode_text(ids[b].narrow(0, 0, length));
    if (!context.defined()) context = at::zeros({ids.size(0), ids.size(1), features.size(1)}, features.options());
    context[b].narrow(0, 0, length).copy_(features);
  }
  // zero behind each prompt already; batch_min cuts all at the shortest
  return model_.text_encoder.tail == "batch_min" ? zero_tail(context, mask, TailMode::batch_min) : context;
}

CachedEncoder::ImageFeatures CachedEncoder::encode_batch_images(const at::Tensor& images) {
  if (!keeps_images_) return encoder_->encode_images(images);
  std::vector<at::Tensor> clip, latents, first_frame;
  for (std::int64_t b = 0; b < images.size(0); ++b) {
    const ImageFeatures one = encode_images(images.narrow(0, b, 1));
    clip.push_back(one.clip);
    latents.push_back(one.latents);
    first_frame.push_back(one.first_frame);
  }
  return {stack_batch(clip), stack_batch(latents), stack_batch(first_frame)};
}

Batch CachedEncoder::encode(const Batch& samples) {
  if (!cache_) return encoder_->encode(samples);
  const c10::NoGradGuard no_grad;
  const ImageFeatures features = encode_batch_images(batch_tensor(samples, key::kImages));
  at::Tensor context = encode_texts(batch_tensor(samples, key::kText), batch_tensor(samples, key::kTextMask));
  return feature_batch(samples, std::move(context), features);
}

}  // namespace troupe::workers
