#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>

#include "base/result.h"
#include "configs/model_config.h"
#include "model/codec/latent_codec.h"
#include "model/shard/network.h"
#include "model/wan/frozen_params.h"

namespace troupe {

/// Pixels u8 [B, T, H, W, 3] as f32 [B, 3, T, height, width] in [-1, 1]: x/255, then (x - 0.5)/0.5, then, only when the
/// size differs, a bilinear resize (half-pixel centres, no antialias).
at::Tensor to_unit_video(const at::Tensor& images, std::int64_t height, std::int64_t width);

/// Text features of prompts seen before, least recently used out first. Not thread-safe.
class TextFeatureCache {
 public:
  explicit TextFeatureCache(std::int64_t max_bytes) : max_bytes_(max_bytes) {}
  /// The features stored under `key`, or an undefined tensor. Marks them as used.
  at::Tensor find(const std::string& key);
  /// Stores features; a tensor larger than the whole cache is not kept.
  void put(const std::string& key, at::Tensor features);

  std::int64_t bytes() const { return bytes_; }
  std::int64_t hits() const { return hits_; }
  std::int64_t misses() const { return misses_; }

 private:
  using Entry = std::pair<std::string, at::Tensor>;
  std::int64_t max_bytes_, bytes_ = 0, hits_ = 0, misses_ = 0;
  std::list<Entry> entries_;  // newest first
  std::unordered_map<std::string, std::list<Entry>::iterator> index_;
};

/// From collated samples to the batch's conditioning: the frozen encoders and the codec, without gradients.
///
/// Not thread-safe; the learner's thread calls it. Results own their memory.
class FeatureEncoder {
 public:
  static constexpr std::int64_t kDefaultCacheBytes = std::int64_t{512} << 20;

  FeatureEncoder(ModelConfig config, FrozenParams text, FrozenParams image, std::unique_ptr<LatentCodec> codec,
                 std::int64_t cache_bytes = kDefaultCacheBytes);
  /// Encoders with random values from the seed, for runs that load no checkpoint.
  static Result<std::unique_ptr<FeatureEncoder>> random(const ModelConfig& config, std::uint64_t seed);

  /// `samples` holds images, text, text_attention_mask (batch_keys.h). Returns context (each prompt's tail zeroed from
  /// its own length), clip of the first frame, clean_latents, first_frame when the model concatenates it (mask, then
  /// the latents of the first frame followed by zeros), and what samples has of state, action, action_mask and
  /// has_real_action.
  /// Errors: throws c10::Error on a missing tensor or a wrong shape.
  Batch encode(const Batch& samples);

  /// Text features [B, L, d], tail zeroed. A prompt is encoded by itself and up to its length, so its features depend
  /// neither on its neighbours nor on the padding; they are cached by the hash of its real ids.
  at::Tensor encode_text(const at::Tensor& ids, const at::Tensor& mask);

  /// Content hash of each frozen part ("text_encoder", "image_encoder") for a checkpoint's manifest.
  std::map<std::string, std::string> content_hashes() const;
  /// Bytes of parameters and tables, without the cache.
  std::int64_t bytes() const { return text_.bytes() + image_.bytes() + codec_->bytes(); }
  const LatentCodec& codec() const { return *codec_; }
  const TextFeatureCache& text_cache() const { return cache_; }

 private:
  at::Tensor first_frame_channels(const at::Tensor& video) const;

  ModelConfig config_;
  FrozenParams text_, image_;
  std::unique_ptr<LatentCodec> codec_;
  TextFeatureCache cache_;
};

}  // namespace troupe
