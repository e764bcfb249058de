#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "configs/job_config.h"
#include "model/codec/latent_codec.h"
#include "model/wan/features.h"
#include "model/wan/frozen_params.h"

namespace troupe::workers {

/// Identity, in words, of what makes each kind of feature: the network's shape, XXH3-128 of its weights, precision
/// and what it is shown. Equal words, equal features, but for rounding of other hardware. They go into every key
/// (feature_key), so that a change of weights or precision finds no entry of before.
struct FeatureModels {
  std::string text, clip, latents, first_frame;
};

/// kFloat or kBFloat16 of precision.encoders.
at::ScalarType encoder_dtype(const JobConfig& job);

/// The identities of a job's encoders from the content hashes of their weights (frozen_content_hashes).
FeatureModels feature_models(const JobConfig& job, const std::map<std::string, std::string>& hashes);
/// The same with the weights read or drawn and none kept. Errors: those of frozen_content_hashes.
Result<FeatureModels> feature_models(const JobConfig& job);

/// The codec of a job alone (VAE or DCT), for predictions that need no other encoder. Errors: those of
/// load_features.
///
Result<std::unique_ptr<LatentCodec>> load_codec(const JobConfig& job);

/// The weights of a job's frozen encoders (text, image, and with codec vae the VAE), for several FeatureEncoders of
/// one process. Immutable: any thread.
///
class FrozenEncoders {
 public:
  /// Errors: those of load_features.
  static Result<FrozenEncoders> load(const JobConfig& job);
  /// An encoder over these weights, which it shares. Errors: those of make_vae_codec.
  Result<std::unique_ptr<FeatureEncoder>> encoder(
      std::int64_t text_cache_bytes = FeatureEncoder::kDefaultCacheBytes) const;
  /// feature_models of these weights.
  FeatureModels models() const;

 private:
  FrozenEncoders(JobConfig job, FrozenParams text, FrozenParams image)
      : job_(std::move(job)), text_(std::move(text)), image_(std::move(image)) {}
  JobConfig job_;
  FrozenParams text_, image_;
  // None with codec dct.
  std::optional<FrozenParams> vae_;
};

}  // namespace troupe::workers
