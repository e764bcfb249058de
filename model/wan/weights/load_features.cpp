#include "model/wan/weights/load_features.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "base/log.h"
#include "model/wan/vae/vae_codec.h"
#include "model/wan/weights/load_weights.h"

namespace troupe::model {
namespace {

/// What stands before a component's names in the draws of random values: DreamZero's prefixes without action_head.
const char* draw_prefix(Component component) {
  switch (component) {
    case Component::dit:
      return "model.";
    case Component::text_encoder:
      return "text_encoder.";
    case Component::image_encoder:
      return "image_encoder.model.";
    case Component::vae:
      return "vae.model.";
  }
  return "";
}

/// Where a component's weights lie; empty: nowhere.
const std::string& path_of(const ModelInitConfig& init, Component component) {
  const auto& own = component == Component::text_encoder    ? init.text_encoder
                    : component == Component::image_encoder ? init.image_encoder
                                                            : init.vae;
  static const std::string kNowhere;
  if (!own.empty()) return own;
  return init.mode == "dreamzero" ? init.path : kNowhere;
}

Result<void> refuse_difference(const std::string& path, Component component, const KeyDifference& keys) {
  for (const auto* names : {&keys.missing, &keys.unexpected}) {
    if (names->empty()) continue;
    return Error{
        Errc::invalid_argument,
        fmt::format("{}: {} tensors of the {} {}, the first is '{}'", path, names->size(), component_name(component),
                    names == &keys.missing ? "are missing" : "are not part of the configured model", names->front())};
  }
  return {};
}

/// Hands a component's tensors to `visit` in the order of names, from its file or drawn from the seed.
Result<void> visit_frozen_component(const ModelConfig& config, Component component, std::uint64_t seed,
                                    const VisitTensor& visit) {
  const std::string& path = path_of(config.init, component);
  if (path.empty()) {
    std::map<std::string, ParamSpec> by_name;
    for (auto& spec : component_params(config, component)) by_name[spec.name] = spec;
    for (const auto& [name, spec] : by_name) {
      visit(name, initial_tensor({draw_prefix(component) + name, spec.shape, spec.init}, seed));
    }
    return {};
  }
  TROUPE_ASSIGN(const auto source, WeightSource::open(path));
  TROUPE_ASSIGN(const KeyDifference keys, visit_component(source, config, component, visit));
  return refuse_difference(path, component, keys);
}

}  // namespace

Result<FrozenParams> load_frozen_component(const ModelConfig& config, Component component, at::ScalarType dtype,
                                           std::uint64_t seed) {
  if (path_of(config.init, component).empty() && config.init.mode != "random") {
    log::warn("model.init names no file for the {}: it starts from random values drawn from job.seed and stays frozen",
              component_name(component));
  }
  std::map<std::string, at::Tensor> tensors;
  TROUPE_TRY(visit_frozen_component(config, component, seed, [&](const std::string& name, const at::Tensor& tensor) {
    tensors.emplace(name, tensor.to(dtype));
  }));
  return FrozenParams::from_tensors(component_params(config, component), std::move(tensors));
}

Result<void> check_frozen_files(const ModelConfig& config) {
  for (const auto component : {Component::text_encoder, Component::image_encoder, Component::vae}) {
    if (component == Component::vae && config.codec.type == "dct") continue;
    const std::string& path = path_of(config.init, component);
    if (path.empty()) continue;
    TROUPE_ASSIGN(const auto source, WeightSource::open(path));
    TROUPE_ASSIGN(const KeyDifference keys, compare_component(*source, config, component));
    TROUPE_TRY(refuse_difference(path, component, keys));
  }
  return {};
}

Result<std::map<std::string, std::string>> frozen_content_hashes(const ModelConfig& config, at::ScalarType dtype,
                                                                 std::uint64_t seed) {
  std::map<std::string, std::string> hashes;
  for (const auto component : {Component::text_encoder, Component::image_encoder, Component::vae}) {
    if (component == Component::vae && config.codec.type == "dct") continue;
    ContentHash hash;
    TROUPE_TRY(visit_frozen_component(config, component, seed, [&](const std::string& name, const at::Tensor& tensor) {
      hash.add(name, tensor, dtype);
    }));
    hashes[component_name(component)] = hash.hex();
  }
  return hashes;
}

Result<std::unique_ptr<FeatureEncoder>> load_features(const ModelConfig& config, at::ScalarType dtype,
                                                      std::uint64_t seed) {
  TROUPE_ASSIGN(auto text, load_frozen_component(config, Component::text_encoder, dtype, seed));
  TROUPE_ASSIGN(auto image, load_frozen_component(config, Component::image_encoder, dtype, seed));
  std::unique_ptr<LatentCodec> codec;
  if (config.codec.type == "dct") {
    TROUPE_ASSIGN(codec, make_latent_codec(config.codec));
  } else {
    TROUPE_ASSIGN(auto vae, load_frozen_component(config, Component::vae, dtype, seed));
    TROUPE_ASSIGN(codec, make_vae_codec(config.codec, vae, dtype));
  }
  return std::make_unique<FeatureEncoder>(config, std::move(text), std::move(image), std::move(codec));
}

}  // namespace troupe::model
