#include "data/health/dataset_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace troupe::data {

namespace {

const VectorKey* find_key(const std::vector<VectorKey>& keys, const std::string& name) {
  const auto it = std::find_if(keys.begin(), keys.end(), [&](const VectorKey& k) { return k.name == name; });
  return it == keys.end() ? nullptr : &*it;
}

std::string names_of(const std::vector<ActionKey>& keys) {
  std::string out;
  for (const ActionKey& k : keys) out += (out.empty() ? "" : ", ") + k.key.name;
  return out.empty() ? "none" : out;
}

std::string label_column(const Modality& modality, const LerobotInfo& info) {
  for (const NamedColumn& a : modality.annotation) {
    if (info.find(a.column) != nullptr) return a.column;
  }
  return info.find("task_index") != nullptr ? "task_index" : "";
}

SampleColumns everything(const LerobotDataset& dataset, const Modality& modality) {
  SampleColumns out;
  out.state = modality.state;
  for (const VectorKey& key : modality.action) {
    ActionKey action;
    action.key = key;
    out.action.push_back(std::move(action));
  }
  for (const NamedColumn& view : modality.video) {
    const LerobotFeature* feature = dataset.info().find(view.column);
    if (feature != nullptr && feature->is_camera() && !feature->is_depth) out.views.push_back(view);
  }
  if (out.views.empty()) {
    for (const std::string& name : dataset.cameras()) {
      if (!dataset.info().find(name)->is_depth) out.views.push_back({name, name});
    }
  }
  out.label_column = label_column(modality, dataset.info());
  return out;
}

/// Makes the named keys relative and the others absolute.
Result<void> set_relative(const std::vector<std::string>& names, const Modality& modality, SampleColumns& columns) {
  for (ActionKey& a : columns.action) a.relative = false;
  for (const std::string& name : names) {
    const auto it = std::find_if(columns.action.begin(), columns.action.end(),
                                 [&](const ActionKey& a) { return a.key.name == name; });
    if (it == columns.action.end()) {
      return invalid_argument(
          fmt::format("--relative-keys names '{}'; the action keys are {}", name, names_of(columns.action)));
    }
    const VectorKey* state = find_key(columns.state, name);
    if (state == nullptr) state = find_key(modality.state, name);
    if (state == nullptr || state->width() != it->key.width()) {
      return invalid_argument(fmt::format(
          "--relative-keys names '{}', which has {}", name,
          state == nullptr ? std::string("no state key of that name")
                           : fmt::format("{} values, the state of that name {}", it->key.width(), state->width())));
    }
    it->relative = true;
    it->reference = *state;
  }
  return {};
}

/// The default rule: a state of the same name and width, and no gripper.
void set_default_relative(SampleColumns& columns) {
  for (ActionKey& a : columns.action) {
    const VectorKey* state = find_key(columns.state, a.key.name);
    if (state == nullptr || state->width() != a.key.width() || a.key.name.find("gripper") != std::string::npos)
      continue;
    a.relative = true;
    a.reference = *state;
  }
}

}  // namespace

Result<SampleColumns> dataset_keys(const LerobotDataset& dataset, const std::optional<EmbodimentConfig>& embodiment,
                                   const std::vector<std::string>& relative_keys) {
  TROUPE_ASSIGN(const Modality modality, read_modality(dataset.root(), dataset.info()));
  SampleColumns out;
  if (embodiment) {
    auto columns = resolve_columns(modality, dataset.info(), *embodiment);
    if (!columns) return columns.error().with(dataset.root());
    out = std::move(*columns);
  } else {
    out = everything(dataset, modality);
    if (relative_keys.empty()) set_default_relative(out);
  }
  if (!relative_keys.empty()) TROUPE_TRY(set_relative(relative_keys, modality, out));
  return out;
}

std::string modality_json(const SampleColumns& keys) {
  using Json = nlohmann::ordered_json;
  Json out = {
      {"state", Json::object()}, {"action", Json::object()}, {"video", Json::object()}, {"annotation", Json::object()}};
  const auto slice = [](const VectorKey& k) {
    return Json{{"start", k.start}, {"end", k.end}, {"original_key", k.column}};
  };
  for (const VectorKey& k : keys.state) out["state"][k.name] = slice(k);
  for (const ActionKey& k : keys.action) out["action"][k.key.name] = slice(k.key);
  for (const NamedColumn& v : keys.views) out["video"][v.name] = {{"original_key", v.column}};
  for (const std::string& column : keys.label_columns()) {
    const bool annotation = column.rfind("annotation.", 0) == 0;
    out["annotation"][annotation ? column.substr(11) : column] = {{"original_key", column}};
  }
  return out.dump(1) + "\n";
}

}  // namespace troupe::data
