#include "model/wan/weights/checkpoint_names.h"

#include <array>
#include <utility>

#include "model/wan/clip_encoder.h"
#include "model/wan/dit_units.h"
#include "model/wan/t5_encoder.h"
#include "model/wan/vae_params.h"

namespace troupe::model {
namespace {

constexpr std::string_view kHead = "action_head.";
constexpr std::string_view kPeft = "base_model.model.";

/// What stands before a component's names in a DreamZero checkpoint, behind kHead.
struct ComponentPrefix {
  Component component;
  const char* name;
  std::string_view prefix;
};
constexpr std::array<ComponentPrefix, 4> kPrefixes = {
    {{Component::dit, "dit", "model."},
     {Component::text_encoder, "text_encoder", "text_encoder."},
     {Component::image_encoder, "image_encoder", "image_encoder.model."},
     {Component::vae, "vae", "vae.model."}}};

const ComponentPrefix& prefix_of(Component component) { return kPrefixes[static_cast<std::size_t>(component)]; }

bool take_prefix(std::string_view& name, std::string_view prefix) {
  if (!name.starts_with(prefix)) return false;
  name.remove_prefix(prefix.size());
  return true;
}

/// PEFT wraps an adapted linear: what was its weight is its base_layer's.
std::string without_path_element(std::string_view name, std::string_view element) {
  const std::string middle = "." + std::string(element) + ".";
  std::string out(name);
  for (std::size_t at = out.find(middle); at != std::string::npos; at = out.find(middle, at)) {
    out.erase(at, middle.size() - 1);
  }
  return out;
}

/// "x.lora_A.default.weight" -> "x.lora_A.weight".
std::string plain_adapter_name(std::string name) {
  for (const char* part : {".lora_A", ".lora_B"}) {
    const std::string ending = std::string(part) + ".default.weight";
    if (name.ends_with(ending)) return name.substr(0, name.size() - ending.size()) + part + ".weight";
  }
  return name;
}

}  // namespace

std::optional<StoredName> read_stored_name(std::string_view stored, Component component) {
  std::string_view name = stored;
  take_prefix(name, kPeft);
  if (take_prefix(name, kHead)) {
    bool known = false;
    for (const auto& [candidate, label, prefix] : kPrefixes) {
      if (known || !take_prefix(name, prefix)) continue;
      component = candidate;
      known = true;
    }
    if (!known) return std::nullopt;
  }
  take_prefix(name, kPeft);
  if (name.empty()) return std::nullopt;
  if (component == Component::image_encoder && name.starts_with("textual.")) return std::nullopt;
  return StoredName{component, plain_adapter_name(without_path_element(name, "base_layer"))};
}

std::string dreamzero_name(Component component, std::string_view name) {
  std::string out(kHead);
  out += prefix_of(component).prefix;
  for (const char* part : {".lora_A", ".lora_B"}) {
    const std::string ending = std::string(part) + ".weight";
    if (!name.ends_with(ending)) continue;
    name.remove_suffix(ending.size());
    return out + std::string(kPeft) + std::string(name) + part + ".default.weight";
  }
  return out + std::string(name);
}

const char* component_name(Component component) { return prefix_of(component).name; }

std::vector<ParamSpec> component_params(const ModelConfig& config, Component component) {
  switch (component) {
    case Component::text_encoder:
      return t5_params(config.text_encoder);
    case Component::image_encoder:
      return clip_params(config.image_encoder);
    case Component::vae:
      return config.codec.type == "dct" ? std::vector<ParamSpec>{} : vae_params(config.codec);
    case Component::dit:
      break;
  }
  std::vector<ParamSpec> list;
  for (auto& unit : dit_units(config)) {
    for (auto& spec : unit.params) list.push_back(std::move(spec));
  }
  return list;
}

bool is_new_in_dreamzero(const ModelConfig& config, std::string_view name) {
  for (const char* part : {"state_encoder.", "action_encoder.", "action_decoder."}) {
    if (name.starts_with(part)) return true;
  }
  if (config.dit.type != "ti2v") return false;
  if (name.starts_with("img_emb.")) return true;
  if (!name.starts_with("blocks.")) return false;
  for (const char* part : {".cross_attn.k_img.", ".cross_attn.v_img.", ".cross_attn.norm_k_img."}) {
    if (name.find(part) != std::string_view::npos) return true;
  }
  return false;
}

}  // namespace troupe::model
