#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "configs/job_config.h"
#include "model/shard/network.h"
#include "model/wan/features.h"
#include "workers/encoder/feature_cache.h"
#include "workers/encoder/frozen_encoders.h"

namespace troupe::workers {

/// Says in the cache's folder which networks a job's entries come from. Errors: those of FeatureCache::describe_model.
Result<void> describe_models(FeatureCache& cache, const JobConfig& job, const FeatureModels& models);

/// The frozen encoders of a job with its feature cache in front (data.features;
/// docs/features.md). Without a cache it is its FeatureEncoder. With one, each sample is encoded
/// by itself, so that what a sample gets depends on nothing but the sample; what is found is not computed, what is
/// computed is stored. A tensor that cannot be stored (a full disk) is still returned: store_error().
///
/// Errors of the encode functions: throw c10::Error as FeatureEncoder's do. Not thread-safe; the cache may be
/// shared.
class CachedEncoder {
 public:
  using ImageFeatures = FeatureEncoder::ImageFeatures;

  /// With `encoder` null only has_text and has_images may be called. `cache` null: none. `text_memory_bytes`
  /// bounds the texts that are kept in memory.
  CachedEncoder(const JobConfig& job, std::unique_ptr<FeatureEncoder> encoder, FeatureModels models,
                std::shared_ptr<FeatureCache> cache,
                std::int64_t text_memory_bytes = FeatureEncoder::kDefaultCacheBytes);
  /// Over `weights`, with the cache of data.features.cache opened unless that is empty. Errors: FeatureCache::open's,
  /// and those of FrozenEncoders::encoder.
  static Result<std::unique_ptr<CachedEncoder>> make(const JobConfig& job, const FrozenEncoders& weights);
  static Result<std::unique_ptr<CachedEncoder>> make(const JobConfig& job);
  /// `count` of them, at least one, for as many threads, one each, over the same weights and one cache; each has its
  /// part of the memory for texts. Errors: as make.
  static Result<std::vector<std::unique_ptr<CachedEncoder>>> make_all(const JobConfig& job,
                                                                      const FrozenEncoders& weights,
                                                                      std::int64_t count);

  /// As FeatureEncoder::encode: collated samples in, context, clip, latents and first frame in the place of ids and
  /// canvases out.
  Batch encode(const Batch& samples);
  /// Features [L, d] of the real ids i64 [L] of one prompt.
  at::Tensor encode_text(const at::Tensor& ids);
  /// Features of the frames u8 [1, T, H, W, 3] of one sample (canvases), kept under the hash of their bytes and,
  /// unless it is empty, under `identity`, which says in words what they are (EncodedSampleBuilder).
  ImageFeatures encode_images(const at::Tensor& images, const std::string& identity = {});
  /// The features kept under `identity`; nothing unless all are there and sound.
  std::optional<ImageFeatures> find_images(const std::string& identity);

  /// Whether the cache has them, without reading them.
  bool has_text(const at::Tensor& ids);
  bool has_images(const std::string& identity);

  FeatureCache* cache() const { return cache_.get(); }
  const FeatureEncoder& encoder() const { return *encoder_; }
  /// Bytes of parameters, tables and of the texts kept in memory.
  std::int64_t bytes() const { return encoder_->bytes() + encoder_->text_cache().bytes() + texts_.bytes(); }
  /// The first failure to store something.
  const std::optional<Error>& store_error() const { return store_error_; }

 private:
  /// Keys of what the image encoder and the codec make of one clip.
  struct ImageKeys {
    FeatureKey clip, latents, first_frame;
  };
  /// feature_key of each kind's network over `identity`.
  ImageKeys image_keys(const std::string& identity) const;
  /// [B, L, width] from ids and mask i64 [B, L]; zeros behind each prompt, and with text_encoder.tail batch_min
  /// behind the shortest.
  at::Tensor encode_texts(const at::Tensor& ids, const at::Tensor& mask);
  ImageFeatures encode_batch_images(const at::Tensor& images);
  /// Puts a tensor into the cache. The first failure is logged and kept in store_error_.
  void store(FeatureKind kind, const FeatureKey& key, const FeatureKey& alias, const at::Tensor& tensor);
  /// Only with a cache.
  std::optional<at::Tensor> find(const FeatureKey& key);

  const ModelConfig model_;
  const bool keeps_images_;
  std::unique_ptr<FeatureEncoder> encoder_;
  const FeatureModels models_;
  std::shared_ptr<FeatureCache> cache_;
  TextFeatureCache texts_;
  std::optional<Error> store_error_;
};

}  // namespace troupe::workers
