#include <nlohmann/json.hpp>

#include "workers/inference/policy/gear_experiment.h"

namespace troupe::workers {

namespace {

using Json = nlohmann::ordered_json;  // transforms are applied in the order of the file

constexpr const char* kTransforms = "groot.vla.data.transform.";

std::vector<std::string> names_of(const std::string& prefix, const std::vector<PolicyKey>& keys) {
  std::vector<std::string> names;
  for (const PolicyKey& key : keys) names.push_back(prefix + key.name);
  return names;
}

Json modality(std::vector<std::int64_t> deltas, const std::vector<std::string>& keys) {
  return {{"_target_", "groot.vla.data.dataset.ModalityConfig"},
          {"delta_indices", std::move(deltas)},
          {"eval_delta_indices", {0}},
          {"modality_keys", keys}};
}

Json transform(const char* name, const std::vector<std::string>& keys, const Json& more = Json::object()) {
  Json out = {{"_target_", std::string(kTransforms) + name}, {"apply_to", keys}};
  out.update(more);
  return out;
}

Json vectors(const std::string& prefix, const std::vector<PolicyKey>& keys) {
  Json modes = Json::object();
  for (const PolicyKey& key : keys) modes[prefix + key.name] = enum_name(key.mode);
  return modes;
}

Json transforms(const PolicySpec& spec, const std::vector<std::string>& views) {
  const ImageConfig& image = spec.image;
  const auto state = names_of("state.", spec.state), action = names_of("action.", spec.action);
  Json list = Json::array();
  list.push_back(transform("VideoToTensor", views));
  list.push_back(transform("VideoCrop", views, {{"scale", image.crop}, {"mode", "random"}}));
  list.push_back(
      transform("VideoResize", views, {{"height", image.height}, {"width", image.width}, {"interpolation", "linear"}}));
  list.push_back(transform("VideoColorJitter", views,
                           {{"brightness", image.brightness},
                            {"contrast", image.contrast},
                            {"saturation", image.saturation},
                            {"hue", image.hue}}));
  list.push_back(transform("VideoToNumpy", views));
  list.push_back(transform("StateActionToTensor", state));
  list.push_back(transform("StateActionTransform", state, {{"normalization_modes", vectors("state.", spec.state)}}));
  list.push_back(transform("StateActionToTensor", action));
  list.push_back(transform("StateActionTransform", action, {{"normalization_modes", vectors("action.", spec.action)}}));
  list.push_back({{"_target_", std::string(kTransforms) + "ConcatTransform"},
                  {"video_concat_order", views},
                  {"state_concat_order", state},
                  {"action_concat_order", action}});
  list.push_back({{"_target_", "groot.vla.model.dreamzero.transform.dreamzero_cotrain.DreamTransform"},
                  {"default_instruction", "Perform the default behavior."},
                  {"language_dropout_prob", 0.0},
                  {"always_use_default_instruction", false},
                  {"max_state_dim", spec.model.dit.max_state_dim},
                  {"max_action_dim", spec.model.dit.action_dim},
                  {"max_length", spec.model.text_encoder.max_length},
                  {"state_horizon", 1},
                  {"action_horizon", spec.window.action_horizon},
                  {"embodiment_tag_mapping", {{spec.embodiment.tag, spec.embodiment.id}}},
                  {"tokenizer_path", "google/umt5-xxl"}});
  return list;
}

}  // namespace

std::string gear_experiment_yaml(const PolicySpec& spec) {
  std::vector<std::string> views, relative;
  for (const std::string& view : spec.embodiment.views) views.push_back("video." + view);
  for (const PolicyKey& key : spec.action) {
    if (key.relative) relative.push_back(key.name);
  }
  std::vector<std::int64_t> steps;
  for (std::int64_t i = 0; i < spec.window.action_horizon; ++i) steps.push_back(i);
  std::vector<std::int64_t> frames = steps;
  frames.push_back(spec.window.action_horizon);

  const std::string& tag = spec.embodiment.tag;
  Json modalities = {{"video", modality(frames, views)},
                     {"state", modality({0}, names_of("state.", spec.state))},
                     {"action", modality(steps, names_of("action.", spec.action))}};
  if (!spec.embodiment.language_key.empty()) {
    modalities["language"] = modality({0}, {"annotation." + spec.embodiment.language_key});
  }
  bool per_step = false;
  for (const PolicyKey& key : spec.action) per_step |= key.statistics.size() > 1;
  const Json root = {{"model", {{"_target_", "groot.vla.model.dreamzero.base_vla.VLA"}}},
                     {"eval_bf16", true},
                     {"save_lora_only", false},
                     {"relative_action", !relative.empty() && !per_step},
                     {"relative_action_per_horizon", per_step},
                     {"relative_action_keys", relative},
                     {"modality_configs", {{tag, modalities}}},
                     {"transforms",
                      {{tag,
                        {{"_target_", std::string(kTransforms) + "ComposedModalityTransform"},
                         {"transforms", transforms(spec, views)}}}}}};
  return root.dump(2) + "\n";
}

}  // namespace troupe::workers
