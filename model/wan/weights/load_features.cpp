#include "model/wan/weights/load_features.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <map>

#include "base/log.h"
#include "model/wan/vae/vae_codec.h"
#include "model/wan/weights/load_weights.h"

namespace troupe {
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

Result<std::map<std::string, at::Tensor>> read_file(const ModelConfig& config, Component component,
                                                    const std::string& path, at::ScalarType dtype) {
  TROUPE_ASSIGN(const auto source, WeightSource::open(path));
  TROUPE_ASSIGN(auto loaded, load_component(source, config, component, dtype));
  for (const auto* names : {&loaded.keys.missing, &loaded.keys.unexpected}) {
    if (names->empty()) continue;
    return Error{
        Errc::invalid_argument,
        fmt::format("{}: {} tensors of the {} {}, the first is '{}'", path, names->size(), component_name(component),
                    names == &loaded.keys.missing ? "are missing" : "are not part of the configured model",
                    names->front())};
  }
  return std::move(loaded.tensors);
}

}  // namespace

Result<FrozenParams> load_frozen_component(const ModelConfig& config, Component component, at::ScalarType dtype,
                                           std::uint64_t seed) {
  const auto specs = component_params(config, component);
  const std::string& path = path_of(config.init, component);
  if (!path.empty()) {
    TROUPE_ASSIGN(auto tensors, read_file(config, component, path, dtype));
    return FrozenParams::from_tensors(specs, std::move(tensors));
  }
  if (config.init.mode != "random") {
    log::warn("model.init names no file for the {}: it starts from random values drawn from job.seed and stays frozen",
              component_name(component));
  }
  std::map<std::string, at::Tensor> drawn;
  for (const auto& spec : specs) {
    drawn[spec.name] = initial_tensor({draw_prefix(component) + spec.name, spec.shape, spec.init}, seed).to(dtype);
  }
  return FrozenParams::from_tensors(specs, std::move(drawn));
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
    TROUPE_ASSIGN(codec, make_vae_codec(config.codec, std::move(vae), dtype));
  }
  return std::make_unique<FeatureEncoder>(config, std::move(text), std::move(image), std::move(codec));
}

}  // namespace troupe
