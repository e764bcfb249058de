#include "workers/data/lerobot/modality.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "workers/data/lerobot/file_checks.h"

namespace troupe {

namespace {

using Json = nlohmann::ordered_json;

template <class T>
std::string names_of(const std::vector<T>& items) {
  std::string out;
  for (const T& item : items) out += (out.empty() ? "" : ", ") + item.name;
  return out.empty() ? "none" : out;
}

template <class T>
const T* find_named(const std::vector<T>& items, std::string_view name) {
  const auto it = std::find_if(items.begin(), items.end(), [&](const T& item) { return item.name == name; });
  return it == items.end() ? nullptr : &*it;
}

std::int64_t width_of(const LerobotFeature& feature) { return feature.shape.empty() ? 1 : feature.shape[0]; }

Result<void> check_slice(const VectorKey& key, const LerobotInfo& info, std::string_view section) {
  const LerobotFeature* feature = info.find(key.column);
  if (feature == nullptr) {
    return Error{Errc::invalid_argument,
                 fmt::format("{}.{} reads column '{}', which info.json does not list", section, key.name, key.column)};
  }
  if (key.start < 0 || key.start >= key.end || key.end > width_of(*feature)) {
    return Error{Errc::invalid_argument, fmt::format("{}.{} is [{}, {}) of '{}', which has {} values", section,
                                                     key.name, key.start, key.end, key.column, width_of(*feature))};
  }
  return {};
}

Result<std::vector<VectorKey>> parse_vectors(const Json& json, const char* section, const char* column,
                                             const LerobotInfo& info) {
  std::vector<VectorKey> keys;
  if (!json.contains(section)) return keys;
  for (const auto& [name, value] : json[section].items()) {
    VectorKey key{.name = name,
                  .column = value.value("original_key", column),
                  .start = value.at("start"),
                  .end = value.at("end")};
    TROUPE_TRY(check_slice(key, info, section));
    keys.push_back(std::move(key));
  }
  return keys;
}

Result<Modality> parse_modality(const Json& json, const LerobotInfo& info) {
  Modality m;
  TROUPE_ASSIGN(m.state, parse_vectors(json, "state", "observation.state", info));
  TROUPE_ASSIGN(m.action, parse_vectors(json, "action", "action", info));
  if (json.contains("video")) {
    for (const auto& [name, value] : json["video"].items()) {
      m.video.push_back({name, value.value("original_key", "observation.images." + name)});
    }
  }
  if (json.contains("annotation")) {
    for (const auto& [name, value] : json["annotation"].items()) {
      m.annotation.push_back({name, value.value("original_key", "annotation." + name)});
    }
  }
  return m;
}

/// "left" of "observation.state.left", or `whole` for the feature itself; empty when the feature is neither.
std::string short_name(const std::string& feature, const std::string& prefix, const char* whole) {
  if (feature == prefix) return whole;
  if (feature.rfind(prefix + ".", 0) == 0) return feature.substr(prefix.size() + 1);
  return {};
}

Modality derive_modality(const LerobotInfo& info) {
  Modality m;
  for (const LerobotFeature& f : info.features) {
    if (f.is_vector()) {
      std::string state = short_name(f.name, "observation.state", "state");
      if (f.name == "state") state = "state";
      std::string action = short_name(f.name, "action", "action");
      if (f.name == "actions") action = "action";
      if (!state.empty()) m.state.push_back({state, f.name, 0, width_of(f)});
      if (!action.empty()) m.action.push_back({action, f.name, 0, width_of(f)});
    }
    if (f.is_video()) {
      const std::string name = short_name(f.name, "observation.images", "");
      m.video.push_back({name.empty() ? f.name : name, f.name});
    }
    if (f.name.rfind("annotation.", 0) == 0) m.annotation.push_back({f.name.substr(11), f.name});
  }
  return m;
}

/// The whole column that empty keys stand for: the first candidate that exists.
Result<VectorKey> whole_column(const LerobotInfo& info, std::initializer_list<const char*> candidates, const char* name,
                               const char* config_key) {
  for (const char* column : candidates) {
    if (const LerobotFeature* f = info.find(column)) return VectorKey{name, column, 0, width_of(*f)};
  }
  return Error{Errc::invalid_argument,
               fmt::format("data.embodiment.{} is empty, which means the whole column '{}', and the dataset "
                           "has no such column: name the keys",
                           config_key, *candidates.begin())};
}

Result<VectorKey> named_key(const std::vector<VectorKey>& keys, const std::string& name, const char* config_key) {
  if (const VectorKey* key = find_named(keys, name)) return *key;
  return Error{Errc::invalid_argument,
               fmt::format("data.embodiment.{} names '{}'; the dataset has {}", config_key, name, names_of(keys))};
}

Result<void> resolve_actions(const Modality& m, const LerobotInfo& info, const EmbodimentConfig& e,
                             SampleColumns& out) {
  if (e.action_keys.empty()) {
    TROUPE_ASSIGN(VectorKey key, whole_column(info, {"action", "actions"}, "action", "action_keys"));
    out.action.push_back({.key = std::move(key), .relative = false, .reference = {}});
  }
  for (const std::string& name : e.action_keys) {
    TROUPE_ASSIGN(VectorKey key, named_key(m.action, name, "action_keys"));
    out.action.push_back({.key = std::move(key), .relative = false, .reference = {}});
  }
  for (const std::string& name : e.relative_action_keys) {
    const auto it =
        std::find_if(out.action.begin(), out.action.end(), [&](const ActionKey& a) { return a.key.name == name; });
    if (it == out.action.end()) {
      return Error{
          Errc::invalid_argument,
          fmt::format("data.embodiment.relative_action_keys names '{}', which is not among action_keys", name)};
    }
    TROUPE_ASSIGN(it->reference, named_key(m.state, name, "relative_action_keys"));
    it->relative = true;
    if (it->reference.width() != it->key.width()) {
      return Error{Errc::invalid_argument, fmt::format("relative action '{}' has {} values, the state of that name {}",
                                                       name, it->key.width(), it->reference.width())};
    }
  }
  return {};
}

Result<void> resolve_views(const Modality& m, const LerobotInfo& info, const EmbodimentConfig& e, SampleColumns& out) {
  if (e.views.empty()) out.views = m.video;
  for (const std::string& name : e.views) {
    const NamedColumn* view = find_named(m.video, name);
    const LerobotFeature* feature = info.find(view != nullptr ? view->column : name);
    if (feature == nullptr || !feature->is_video()) {
      return Error{Errc::invalid_argument,
                   fmt::format("data.embodiment.views names '{}'; the dataset has {}", name, names_of(m.video))};
    }
    out.views.push_back({name, feature->name});
  }
  if (out.views.empty())
    return Error{Errc::invalid_argument, "the dataset has no video feature, and a sample needs at least one view"};
  if (info.video_path.empty())
    return Error{Errc::invalid_argument, "info.json has no video_path, and a sample needs at least one view"};
  return {};
}

Result<std::string> resolve_label(const Modality& m, const LerobotInfo& info, const EmbodimentConfig& e) {
  if (e.language_key.empty()) {
    for (const NamedColumn& a : m.annotation) {
      if (info.find(a.column) != nullptr) return a.column;
    }
    return std::string(info.find("task_index") != nullptr ? "task_index" : "");
  }
  const NamedColumn* annotation = find_named(m.annotation, e.language_key);
  const std::string column = annotation != nullptr ? annotation->column : e.language_key;
  if (info.find(column) == nullptr) {
    return Error{Errc::invalid_argument, fmt::format("data.embodiment.language_key is '{}'; the dataset has {}",
                                                     e.language_key, names_of(m.annotation))};
  }
  return column;
}

}  // namespace

Result<Modality> read_modality(const std::string& root, const LerobotInfo& info) {
  const std::string path = root + "/meta/modality.json";
  std::error_code code;
  if (std::filesystem::symlink_status(path, code).type() == std::filesystem::file_type::not_found)
    return derive_modality(info);
  TROUPE_ASSIGN(const std::string text, read_text_file(path));
  try {
    auto modality = parse_modality(Json::parse(text), info);
    if (!modality) return modality.error().with(path);
    return modality;
  } catch (const nlohmann::json::exception& e) {
    return Error{Errc::invalid_argument, fmt::format("{}: {}", path, e.what())};
  }
}

std::size_t SampleColumns::state_width() const {
  std::size_t width = 0;
  for (const VectorKey& k : state) width += k.width();
  return width;
}

std::size_t SampleColumns::action_width() const {
  std::size_t width = 0;
  for (const ActionKey& k : action) width += k.key.width();
  return width;
}

std::vector<std::string> SampleColumns::vector_columns() const {
  std::vector<std::string> columns;
  for (const VectorKey& k : state) columns.push_back(k.column);
  for (const ActionKey& k : action) {
    columns.push_back(k.key.column);
    if (k.relative) columns.push_back(k.reference.column);
  }
  std::sort(columns.begin(), columns.end());
  columns.erase(std::unique(columns.begin(), columns.end()), columns.end());
  return columns;
}

Result<SampleColumns> resolve_columns(const Modality& modality, const LerobotInfo& info,
                                      const EmbodimentConfig& embodiment) {
  SampleColumns out;
  if (embodiment.state_keys.empty()) {
    TROUPE_ASSIGN(VectorKey key, whole_column(info, {"observation.state", "state"}, "state", "state_keys"));
    out.state.push_back(std::move(key));
  }
  for (const std::string& name : embodiment.state_keys) {
    TROUPE_ASSIGN(VectorKey key, named_key(modality.state, name, "state_keys"));
    out.state.push_back(std::move(key));
  }
  TROUPE_TRY(resolve_actions(modality, info, embodiment, out));
  TROUPE_TRY(resolve_views(modality, info, embodiment, out));
  TROUPE_ASSIGN(out.label_column, resolve_label(modality, info, embodiment));
  return out;
}

}  // namespace troupe
