#include "model/wan/weights/infer_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

namespace troupe::model {
namespace {

constexpr std::int64_t kLargestSize = 1 << 24, kMostLayers = 1024;

/// Sizes of one component's stored tensors. The first problem is kept; what is read after it is 1.
class Sizes {
 public:
  Sizes(const ComponentKeys& keys, const ShapeOf& shape_of) : keys_(keys), shape_of_(shape_of) {}

  bool has(const std::string& name) const { return keys_.weights.count(name) != 0; }
  std::int64_t of(const std::string& name, std::size_t axis) {
    const auto found = keys_.weights.find(name);
    if (found == keys_.weights.end()) {
      return problem(fmt::format("the model's sizes cannot be told: there is no {}; say which model it is", name));
    }
    const auto shape = shape_of_(found->second);
    if (!shape) return problem(shape.error().message());
    if (axis >= shape->size() || (*shape)[axis] < 1 || (*shape)[axis] > kLargestSize) {
      return problem(fmt::format("{} has shape {}, which no model has", name, shape_text(*shape)));
    }
    return (*shape)[axis];
  }
  /// One more than the largest N of names "prefixN.".
  std::int64_t layers(const std::string& prefix) {
    std::int64_t count = 0;
    for (auto it = keys_.weights.lower_bound(prefix); it != keys_.weights.end() && it->first.starts_with(prefix);
         ++it) {
      std::int64_t index = -1;
      const char* begin = it->first.data() + prefix.size();
      const auto parsed = std::from_chars(begin, it->first.data() + it->first.size(), index);
      if (parsed.ec != std::errc() || index < 0 || index >= kMostLayers) {
        return problem(fmt::format("{} is not in a layer below {}", it->first, kMostLayers));
      }
      count = std::max(count, index + 1);
    }
    return std::max<std::int64_t>(count, 1);
  }
  Result<void> result() const {
    if (!problem_.empty()) return Error{Errc::invalid_argument, problem_};
    return {};
  }

 private:
  std::int64_t problem(std::string text) {
    if (problem_.empty()) problem_ = std::move(text);
    return 1;
  }
  const ComponentKeys& keys_;
  const ShapeOf& shape_of_;
  std::string problem_;
};

void infer_dit(Sizes& sizes, ModelConfig& config) {
  auto& dit = config.dit;
  dit.dim = sizes.of("patch_embedding.weight", 0);
  dit.in_dim = sizes.of("patch_embedding.weight", 1);
  dit.out_dim = std::max<std::int64_t>(sizes.of("head.head.weight", 0) / 4, 1);
  dit.freq_dim = sizes.of("time_embedding.0.weight", 1);
  dit.ffn_dim = sizes.of("blocks.0.ffn.0.weight", 0);
  dit.num_layers = sizes.layers("blocks.");
  dit.num_heads = std::max<std::int64_t>(dit.dim / 128, 1);
  // the first-frame latent and its mask are further input channels
  dit.concat_first_frame_latent = dit.in_dim != dit.out_dim;
  dit.type = dit.concat_first_frame_latent ? "i2v" : "ti2v";
  config.text_encoder.dim = sizes.of("text_embedding.0.weight", 1);
  if (sizes.has("img_emb.proj.1.weight")) config.image_encoder.dim = sizes.of("img_emb.proj.1.weight", 0);
  if (sizes.has("state_encoder.layer1.W")) {
    dit.max_state_dim = sizes.of("state_encoder.layer1.W", 1);
    dit.encoder_hidden = sizes.of("state_encoder.layer1.W", 2);
  }
  if (sizes.has("action_encoder.W1.W")) dit.action_dim = sizes.of("action_encoder.W1.W", 1);
}

void infer_text_encoder(Sizes& sizes, TextEncoderConfig& text) {
  text.vocab = sizes.of("token_embedding.weight", 0);
  text.dim = sizes.of("token_embedding.weight", 1);
  text.dim_attn = sizes.of("blocks.0.attn.q.weight", 0);
  text.dim_ff = sizes.of("blocks.0.ffn.fc1.weight", 0);
  text.num_buckets = sizes.of("blocks.0.pos_embedding.embedding.weight", 0);
  text.num_heads = sizes.of("blocks.0.pos_embedding.embedding.weight", 1);
  text.num_layers = sizes.layers("blocks.");
}

void infer_image_encoder(Sizes& sizes, ImageEncoderConfig& image) {
  image.dim = sizes.of("visual.cls_embedding", 2);
  image.patch_size = sizes.of("visual.patch_embedding.weight", 2);
  const auto patches = static_cast<double>(sizes.of("visual.pos_embedding", 1) - 1);
  image.image_size = image.patch_size * static_cast<std::int64_t>(std::llround(std::sqrt(patches)));
  image.mlp_dim = sizes.of("visual.transformer.0.mlp.0.weight", 0);
  image.num_layers = sizes.layers("visual.transformer.");
  image.num_heads = std::max<std::int64_t>(image.dim / 80, 1);
  image.head_dim_out = sizes.of("visual.head", 1);
}

void infer_vae(Sizes& sizes, LatentCodecConfig& codec) {
  const bool nested = sizes.has("encoder.downsamples.0.downsamples.0.residual.0.gamma");
  codec.type = nested ? "wan22" : "wan21";
  codec.channels = sizes.of("conv2.weight", 0);
  codec.stride_t = 4;
  codec.stride_hw = nested ? 16 : 8;
  codec.encoder_dim = sizes.of("encoder.conv1.weight", 0);
  codec.decoder_dim = sizes.of("decoder.head.0.gamma", 0);
}

}  // namespace

std::optional<Component> guess_component(const std::vector<std::string>& stored) {
  const auto any = [&stored](std::string_view part) {
    return std::any_of(stored.begin(), stored.end(),
                       [&](const std::string& name) { return name.find(part) != name.npos; });
  };
  if (any("visual.") || any("textual.")) return Component::image_encoder;
  if (any(".self_attn.") || any("patch_embedding.") || any("action_encoder.")) return Component::dit;
  if (any("token_embedding.") || any(".pos_embedding.embedding.")) return Component::text_encoder;
  if (any("encoder.conv1.") || any("decoder.conv1.")) return Component::vae;
  return std::nullopt;
}

Result<void> infer_sizes(const ComponentKeys& keys, Component component, const ShapeOf& shape_of, ModelConfig& config) {
  Sizes sizes(keys, shape_of);
  switch (component) {
    case Component::dit:
      infer_dit(sizes, config);
      break;
    case Component::text_encoder:
      infer_text_encoder(sizes, config.text_encoder);
      break;
    case Component::image_encoder:
      infer_image_encoder(sizes, config.image_encoder);
      break;
    case Component::vae:
      infer_vae(sizes, config.codec);
      break;
  }
  return sizes.result();
}

}  // namespace troupe::model
