#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "configs/model_config.h"
#include "model/codec/latent_codec.h"
#include "model/shard/network.h"
#include "model/wan/frozen_params.h"
#include "model/wan/unit_video.h"

namespace troupe::model {

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
/// Not thread-safe: one thread at a time. Results own their memory.
class FeatureEncoder {
 public:
  static constexpr std::int64_t kDefaultCacheBytes = std::int64_t{512} << 20;

  FeatureEncoder(ModelConfig config, FrozenParams text, FrozenParams image, std::unique_ptr<LatentCodec> codec,
                 std::int64_t cache_bytes = kDefaultCacheBytes);
  /// Encoders with random values from the seed, for runs that load no checkpoint.
  static Result<std::unique_ptr<FeatureEncoder>> random(const ModelConfig& config, std::uint64_t seed);

  /// `samples` holds images, text, text_attention_mask (batch_keys.h). Returns context (encode_text), clip of the first
  /// frame (encode_image), clean_latents (f32), first_frame when the model concatenates it (first_frame_channels), and
  /// what samples has of state, action, action_mask and has_real_action.
  /// Errors: throws c10::Error on a missing tensor or a wrong shape.
  Batch encode(const Batch& samples);

  /// Records no gradient. Text features [B, L, d] of ids and mask i64 [B, L] in the text encoder's dtype, zeroed behind
  /// each prompt as text_encoder.tail says (batch_min: from the shortest of this call). Prompts that the cache lacks
  /// are encoded together, those of similar lengths in one call. Features are cached by the hash of a prompt's real
  /// ids; they depend on neither padding nor neighbours but for rounding.
  /// Errors: throws c10::Error on a wrong shape or a mask with a hole.
  at::Tensor encode_text(const at::Tensor& ids, const at::Tensor& mask);

  /// What encode() makes of the frames; first_frame is undefined unless the model concatenates it.
  struct ImageFeatures {
    at::Tensor clip, latents, first_frame;
  };
  /// Of canvases u8 [B, T, H, W, 3], each sample by itself; the calling thread's num_threads() (kernels/threads.h)
  /// share the samples. Errors: throws c10::Error on a wrong shape.
  ImageFeatures encode_images(const at::Tensor& images) const;

  /// CLIP features [B, 1 + patches, d] of images [B, 3, H, W] in [-1, 1] of any size, in the image encoder's dtype.
  at::Tensor encode_image(const at::Tensor& images_B3HW) const;

  /// The channels that an i2v model sees beside its latents, f32 [B, 4 + C, 1 + (frames-1)/stride_t, h, w]: the mask (1
  /// in latent frame 0), then the latents of the frame [B, 3, H, W] in [-1, 1] followed by frames-1 frames of zeros.
  at::Tensor first_frame_channels(const at::Tensor& first_frame_B3HW, std::int64_t frames) const;

  /// Bytes of parameters and tables, without the cache.
  std::int64_t bytes() const { return text_.bytes() + image_.bytes() + codec_->bytes(); }
  const LatentCodec& codec() const { return *codec_; }
  const TextFeatureCache& text_cache() const { return cache_; }

 private:
  /// A prompt that the cache lacks.
  struct NewPrompt {
    std::string key;
    at::Tensor ids;  ///< real ids, i64 [L]
  };
  /// Of one.
  ImageFeatures encode_sample(const at::Tensor& images) const;
  /// Encodes prompts in groups and adds their features [L, d] to `features` and to the cache.
  void encode_missing(std::vector<NewPrompt> missing, std::map<std::string, at::Tensor>& features);

  ModelConfig config_;
  FrozenParams text_, image_;
  std::unique_ptr<LatentCodec> codec_;
  TextFeatureCache cache_;
};

/// The batch that FeatureEncoder::encode returns, of features made before: context, frames, and what samples has of
/// state, action, action_mask and has_real_action.
Batch feature_batch(const Batch& samples, at::Tensor context, const FeatureEncoder::ImageFeatures& features);

}  // namespace troupe::model
