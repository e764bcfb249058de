#include "workers/inference/policy/gear_weights.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/log.h"
#include "model/io/weight_source.h"
#include "model/wan/vae/vae_codec.h"
#include "model/wan/weights/load_weights.h"

namespace troupe::workers {

namespace {

constexpr std::size_t kListed = 20;

std::string list_of(std::vector<std::string> names) {
  const std::size_t count = names.size();
  names.resize(std::min(count, kListed));
  std::string out = fmt::format("{}", fmt::join(names, ", "));
  if (count > kListed) out += fmt::format(", and {} more", count - kListed);
  return out;
}

/// A stored tensor's shape, whatever prefix it has; nothing when it is absent.
Result<std::vector<std::int64_t>> stored_shape(const WeightSource& source, const std::string& plain) {
  for (const std::string& stored : source.names()) {
    if (!stored.ends_with(plain)) continue;
    const auto name = read_stored_name(stored, Component::dit);
    if (!name || name->component != Component::dit || name->name != plain) continue;
    TROUPE_ASSIGN(const TensorInfo info, source.info(stored));
    return info.shape;
  }
  return std::vector<std::int64_t>{};
}

/// Sizes that config.json leaves to defaults of the reference's classes.
Result<void> settle_open_sizes(const WeightSource& source, PolicySpec& spec) {
  DitConfig& dit = spec.model.dit;
  if (spec.open_state_dim || spec.open_encoder_hidden) {
    TROUPE_ASSIGN(const auto shape, stored_shape(source, "state_encoder.layer1.W"));  // [1, state, hidden]
    if (shape.size() == 3 && spec.open_state_dim) dit.max_state_dim = shape[1];
    if (shape.size() == 3 && spec.open_encoder_hidden) dit.encoder_hidden = shape[2];
  }
  if (spec.open_action_dim) {
    TROUPE_ASSIGN(const auto shape, stored_shape(source, "action_encoder.W1.W"));  // [1, action, d]
    if (shape.size() == 3) dit.action_dim = shape[1];
  }
  return {};
}

Result<std::map<std::string, at::Tensor>> load_all(const std::shared_ptr<const WeightSource>& source,
                                                   const PolicySpec& spec, Component component, at::ScalarType dtype) {
  TROUPE_ASSIGN(LoadedComponent loaded, load_component(source, spec.model, component, dtype, spec.lora_scale));
  const KeyDifference& keys = loaded.keys;
  const char* what = component_name(component);
  if (!keys.misshapen.empty()) {
    return Error{Errc::invalid_argument,
                 fmt::format("{}: {}: {} tensors have another shape than config.json says: {}", source->path(), what,
                             keys.misshapen.size(), list_of(keys.misshapen))};
  }
  if (!keys.missing.empty()) {
    const std::size_t wanted = component_params(spec.model, component).size();
    return Error{
        Errc::invalid_argument,
        fmt::format("{}: {}: {} of {} tensors are missing: {}{}", source->path(), what, keys.missing.size(), wanted,
                    list_of(keys.missing),
                    keys.missing.size() == wanted ? ". A policy needs all networks in the folder; `troupe export "
                                                    "--format gear` writes them"
                                                  : "")};
  }
  if (!keys.unexpected.empty()) {
    log::warn("{}: {}: {} tensors that the network does not have are left out: {}", source->path(), what,
              keys.unexpected.size(), list_of(keys.unexpected));
  }
  return std::move(loaded.tensors);
}

Result<FrozenParams> load_frozen(const std::shared_ptr<const WeightSource>& source, const PolicySpec& spec,
                                 Component component, at::ScalarType dtype) {
  TROUPE_ASSIGN(auto tensors, load_all(source, spec, component, dtype));
  return FrozenParams::from_tensors(component_params(spec.model, component), std::move(tensors));
}

}  // namespace

Result<GearWeights> load_gear_weights(const std::string& folder, PolicySpec& spec, at::ScalarType dtype) {
  TROUPE_ASSIGN(const auto source, WeightSource::open(folder));
  TROUPE_TRY(settle_open_sizes(*source, spec));
  GearWeights out;
  TROUPE_ASSIGN(auto dit, load_all(source, spec, Component::dit, dtype));
  for (auto& [name, tensor] : dit) out.dit.set(name, std::move(tensor));
  TROUPE_ASSIGN(FrozenParams text, load_frozen(source, spec, Component::text_encoder, dtype));
  TROUPE_ASSIGN(FrozenParams image, load_frozen(source, spec, Component::image_encoder, dtype));
  std::unique_ptr<LatentCodec> codec;
  if (spec.model.codec.type == "dct") {
    TROUPE_ASSIGN(codec, make_latent_codec(spec.model.codec));
  } else {
    TROUPE_ASSIGN(FrozenParams vae, load_frozen(source, spec, Component::vae, dtype));
    TROUPE_ASSIGN(codec, make_vae_codec(spec.model.codec, vae, dtype));
  }
  out.features = std::make_unique<FeatureEncoder>(spec.model, std::move(text), std::move(image), std::move(codec));
  return out;
}

}  // namespace troupe::workers
