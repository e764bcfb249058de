#include "data/lerobot/modality.h"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "data/lerobot/file_checks.h"
#include "data/lerobot/image_feature.h"
#include "data/lerobot/json_number.h"
#include "data/lerobot/json_text.h"

namespace troupe::data {

namespace {

using Json = nlohmann::ordered_json;

Result<void> check_slice(const VectorKey& key, const LerobotInfo& info, std::string_view section) {
  const LerobotFeature* feature = info.find(key.column);
  if (feature == nullptr) {
    return invalid_argument(
        fmt::format("{}.{} reads column '{}', which info.json does not list", section, key.name, key.column));
  }
  if (key.start < 0 || key.start >= key.end || key.end > feature->width()) {
    return invalid_argument(fmt::format("{}.{} is [{}, {}) of '{}', which has {} values", section, key.name, key.start,
                                        key.end, key.column, feature->width()));
  }
  return {};
}

Result<std::vector<VectorKey>> parse_vectors(const Json& json, const char* section, const char* column,
                                             const LerobotInfo& info) {
  std::vector<VectorKey> keys;
  if (!json.contains(section)) return keys;
  for (const auto& [name, value] : json[section].items()) {
    VectorKey key{.name = name, .column = value.value("original_key", column), .start = 0, .end = 0};
    for (const auto& [which, number] : {std::pair{"start", &key.start}, std::pair{"end", &key.end}}) {
      const auto read = whole_number(value, which);
      if (!read) return read.error().with(fmt::format("{}.{}", section, name));
      *number = *read;
    }
    TROUPE_TRY(check_slice(key, info, section));
    keys.push_back(std::move(key));
  }
  return keys;
}

Result<Modality> parse_modality(const Json& json, const LerobotInfo& info) {
  Modality m;
  if (!json.is_object()) return invalid_argument("it holds no object of state, action, video and annotation");
  TROUPE_ASSIGN(m.state, parse_vectors(json, "state", "observation.state", info));
  TROUPE_ASSIGN(m.action, parse_vectors(json, "action", "action", info));
  if (json.contains("video")) {
    for (const auto& [name, value] : json["video"].items()) {
      m.video.push_back({name, value.value("original_key", image_feature(name))});
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
    if (f.is_numbers()) {
      std::string state = short_name(f.name, "observation.state", "state");
      if (f.name == "state") state = "state";
      std::string action = short_name(f.name, "action", "action");
      if (f.name == "actions") action = "action";
      if (!state.empty()) m.state.push_back({state, f.name, 0, f.width()});
      if (!action.empty()) m.action.push_back({action, f.name, 0, f.width()});
    }
    if (f.is_camera() && !f.is_depth) {
      const std::string name = short_name(f.name, "observation.images", "");
      m.video.push_back({name.empty() ? f.name : name, f.name});
    }
    if (f.name.rfind("annotation.", 0) == 0) m.annotation.push_back({f.name.substr(11), f.name});
  }
  return m;
}

}  // namespace

Result<Modality> read_modality(const std::string& root, const LerobotInfo& info) {
  const std::string path = root + "/meta/modality.json";
  std::error_code code;
  if (std::filesystem::symlink_status(path, code).type() == std::filesystem::file_type::not_found)
    return derive_modality(info);
  TROUPE_ASSIGN(const std::string text, read_text_file(path));
  try {
    const auto json = parse_json<Json>(text);
    if (!json) return json.error().with(path);
    auto modality = parse_modality(*json, info);
    if (!modality) return modality.error().with(path);
    return modality;
  } catch (const nlohmann::json::exception& e) {
    return invalid_argument(fmt::format("{}: {}", path, e.what()));
  }
}

}  // namespace troupe::data
