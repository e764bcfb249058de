#include "workers/encoder/frozen_encoders.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "model/shard/precision.h"
#include "model/wan/vae/vae_codec.h"
#include "model/wan/weights/load_features.h"

namespace troupe::workers {

namespace {

// A change of the encoders' arithmetic beyond rounding makes old entries worthless: count this up then.
constexpr int kArithmetic = 1;

std::uint64_t seed_of(const JobConfig& job) { return static_cast<std::uint64_t>(job.job.seed); }

bool has_vae(const ModelConfig& model) { return model.codec.type != "dct"; }

}  // namespace

at::ScalarType encoder_dtype(const JobConfig& job) { return dtype_of_precision(job.precision.encoders); }

FeatureModels feature_models(const JobConfig& job, const std::map<std::string, std::string>& hashes) {
  const auto weights = [&](Component component) {
    const auto it = hashes.find(component_name(component));
    return it == hashes.end() ? std::string("none") : it->second;
  };
  const TextEncoderConfig& t = job.model.text_encoder;
  const ImageEncoderConfig& i = job.model.image_encoder;
  const LatentCodecConfig& c = job.model.codec;
  const std::string canvas = fmt::format("canvas {}x{}", job.model.target_height, job.model.target_width);
  const std::string& precision = job.precision.encoders;
  FeatureModels models;
  models.text = fmt::format(
      "umt5 arithmetic {} weights {} precision {} vocab {} dim {} attn {} ff {} heads {} layers {} buckets {}",
      kArithmetic, weights(Component::text_encoder), precision, t.vocab, t.dim, t.dim_attn, t.dim_ff, t.num_heads,
      t.num_layers, t.num_buckets);
  models.clip =
      fmt::format("clip arithmetic {} weights {} precision {} image {} patch {} dim {} mlp {} heads {} layers {} {}",
                  kArithmetic, weights(Component::image_encoder), precision, i.image_size, i.patch_size, i.dim,
                  i.mlp_dim, i.num_heads, i.num_layers, canvas);
  const std::string coded = has_vae(job.model) ? fmt::format("weights {} precision {} encoder {}",
                                                             weights(Component::vae), precision, c.encoder_dim)
                                               : std::string("precision fp32");
  models.latents = fmt::format("{} arithmetic {} {} channels {} strides {}x{} {}", c.type, kArithmetic, coded,
                               c.channels, c.stride_t, c.stride_hw, canvas);
  models.first_frame = "first frame and mask by " + models.latents;
  return models;
}

Result<FeatureModels> feature_models(const JobConfig& job) {
  TROUPE_ASSIGN(const auto hashes, frozen_content_hashes(job.model, encoder_dtype(job), seed_of(job)));
  return feature_models(job, hashes);
}

Result<std::unique_ptr<LatentCodec>> load_codec(const JobConfig& job) {
  if (!has_vae(job.model)) return make_latent_codec(job.model.codec);
  TROUPE_ASSIGN(auto vae, load_frozen_component(job.model, Component::vae, encoder_dtype(job), seed_of(job)));
  return make_vae_codec(job.model.codec, vae, encoder_dtype(job));
}

Result<FrozenEncoders> FrozenEncoders::load(const JobConfig& job) {
  const auto dtype = encoder_dtype(job);
  TROUPE_ASSIGN(auto text, load_frozen_component(job.model, Component::text_encoder, dtype, seed_of(job)));
  TROUPE_ASSIGN(auto image, load_frozen_component(job.model, Component::image_encoder, dtype, seed_of(job)));
  FrozenEncoders encoders(job, std::move(text), std::move(image));
  if (has_vae(job.model)) {
    TROUPE_ASSIGN(encoders.vae_, load_frozen_component(job.model, Component::vae, dtype, seed_of(job)));
  }
  return encoders;
}

Result<std::unique_ptr<FeatureEncoder>> FrozenEncoders::encoder(std::int64_t text_cache_bytes) const {
  std::unique_ptr<LatentCodec> codec;
  if (vae_) {
    TROUPE_ASSIGN(codec, make_vae_codec(job_.model.codec, *vae_, encoder_dtype(job_)));
  } else {
    TROUPE_ASSIGN(codec, make_latent_codec(job_.model.codec));
  }
  return std::make_unique<FeatureEncoder>(job_.model, text_, image_, std::move(codec), text_cache_bytes);
}

FeatureModels FrozenEncoders::models() const {
  std::map<std::string, std::string> hashes = {{component_name(Component::text_encoder), text_.content_hash()},
                                               {component_name(Component::image_encoder), image_.content_hash()}};
  if (vae_) hashes[component_name(Component::vae)] = vae_->content_hash();
  return feature_models(job_, hashes);
}

}  // namespace troupe::workers
