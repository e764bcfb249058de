#include "workers/data/lerobot/lerobot_info.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "workers/data/lerobot/file_checks.h"

namespace troupe {

namespace {

using Json = nlohmann::ordered_json;

/// Cameras name their axes in any order; ours is height, width, channels.
std::vector<std::int64_t> camera_shape(const std::vector<std::int64_t>& shape, const Json& feature) {
  if (shape.size() != 3 || !feature.contains("names") || !feature["names"].is_array()) return shape;
  std::vector<std::int64_t> out = shape;
  for (std::size_t i = 0; i < 3 && i < feature["names"].size(); ++i) {
    if (!feature["names"][i].is_string()) return shape;
    const std::string axis = feature["names"][i];
    if (axis == "height") out[0] = shape[i];
    if (axis == "width") out[1] = shape[i];
    if (axis == "channel" || axis == "channels") out[2] = shape[i];
  }
  return out;
}

Result<LerobotFeature> parse_feature(const std::string& name, const Json& value) {
  static const std::set<std::string> known = {"float32", "float64", "int8",   "int16", "int32", "int64",
                                              "uint8",   "bool",    "string", "image", "video"};
  LerobotFeature feature{.name = name, .dtype = value.value("dtype", ""), .shape = {}};
  if (known.count(feature.dtype) == 0) {
    return Error{Errc::invalid_argument,
                 fmt::format("feature '{}' has dtype '{}', which no LeRobot version defines", name, feature.dtype)};
  }
  if (value.contains("shape") && value["shape"].is_array())
    feature.shape = value["shape"].get<std::vector<std::int64_t>>();
  if (feature.shape.empty()) feature.shape = {1};
  if (feature.dtype == "video" || feature.dtype == "image") feature.shape = camera_shape(feature.shape, value);
  return feature;
}

Result<LerobotInfo> parse_fields(const Json& json) {
  LerobotInfo info;
  info.codebase_version = json.value("codebase_version", "");
  if (info.codebase_version != "v2.0" && info.codebase_version != "v2.1") {
    return Error{Errc::invalid_argument,
                 fmt::format("codebase_version is '{}'; v2.0 and v2.1 are read", info.codebase_version)};
  }
  if (json.contains("robot_type") && json["robot_type"].is_string()) info.robot_type = json["robot_type"];
  info.total_episodes = json.value("total_episodes", std::int64_t{-1});
  info.total_frames = json.value("total_frames", std::int64_t{-1});
  info.total_tasks = json.value("total_tasks", std::int64_t{-1});
  info.chunks_size = json.value("chunks_size", std::int64_t{1000});
  if (info.chunks_size < 1)
    return Error{Errc::invalid_argument, fmt::format("chunks_size is {}; it is at least 1", info.chunks_size)};
  info.fps = json.value("fps", 0.0);
  if (!(info.fps > 0)) return Error{Errc::invalid_argument, fmt::format("fps is {}; it is above 0", info.fps)};
  info.data_path = json.value("data_path", "");
  if (info.data_path.empty())
    return Error{Errc::invalid_argument, "data_path, the template of the Parquet files, is missing"};
  if (json.contains("video_path") && json["video_path"].is_string()) {
    info.video_path = json["video_path"];
  } else if (json.contains("videos") && json["videos"].is_object()) {
    info.video_path = json["videos"].value("videos_path", "");
  }
  if (json.contains("discarded_episode_indices")) {
    info.discarded_episodes = json["discarded_episode_indices"].get<std::vector<std::int64_t>>();
  }
  if (!json.contains("features") || !json["features"].is_object())
    return Error{Errc::invalid_argument, "features is missing"};
  for (const auto& [name, value] : json["features"].items()) {
    TROUPE_ASSIGN(LerobotFeature feature, parse_feature(name, value));
    info.features.push_back(std::move(feature));
  }
  return info;
}

/// The value of one template field: `spec` is empty, "d" or "0Nd".
Result<std::string> format_field(std::int64_t value, std::string_view spec, std::string_view text) {
  if (spec.empty() || spec == "d") return fmt::format("{}", value);
  const bool padded = spec.size() >= 3 && spec.front() == '0' && spec.back() == 'd' &&
                      std::all_of(spec.begin() + 1, spec.end() - 1, [](char c) { return c >= '0' && c <= '9'; });
  if (!padded || spec.size() > 4) {
    return Error{Errc::invalid_argument,
                 fmt::format("path template '{}': the format ':{}' is not of the form :0Nd", text, spec)};
  }
  return fmt::format("{:0{}}", value, std::stoi(std::string(spec.substr(1, spec.size() - 2))));
}

}  // namespace

const LerobotFeature* LerobotInfo::find(std::string_view name) const {
  const auto it =
      std::find_if(features.begin(), features.end(), [&](const LerobotFeature& f) { return f.name == name; });
  return it == features.end() ? nullptr : &*it;
}

Result<LerobotInfo> parse_lerobot_info(const std::string& text, const std::string& path) {
  try {
    auto info = parse_fields(Json::parse(text));
    if (!info) return info.error().with(path);
    return info;
  } catch (const nlohmann::json::exception& e) {
    return Error{Errc::invalid_argument, fmt::format("{}: {}", path, e.what())};
  }
}

Result<LerobotInfo> read_lerobot_info(const std::string& root) {
  const std::string path = root + "/meta/info.json";
  TROUPE_ASSIGN(const std::string text, read_text_file(path));
  return parse_lerobot_info(text, path);
}

Result<std::string> fill_path_template(std::string_view text, std::int64_t chunk, std::int64_t episode,
                                       std::string_view video_key) {
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    if (text[i] != '{') {
      out += text[i++];
      continue;
    }
    const std::size_t end = text.find('}', i);
    if (end == std::string_view::npos) {
      return Error{Errc::invalid_argument, fmt::format("path template '{}' has a '{{' without a '}}'", text)};
    }
    const std::string_view field = text.substr(i + 1, end - i - 1);
    const std::string_view name = field.substr(0, field.find(':'));
    const std::string_view spec = name.size() == field.size() ? std::string_view{} : field.substr(name.size() + 1);
    if (name == "video_key") {
      out += video_key;
    } else if (name == "episode_chunk" || name == "episode_index") {
      TROUPE_ASSIGN(const std::string value, format_field(name == "episode_chunk" ? chunk : episode, spec, text));
      out += value;
    } else {
      return Error{Errc::invalid_argument,
                   fmt::format("path template '{}' names '{}'; episode_chunk, episode_index and video_key are known",
                               text, name)};
    }
    i = end + 1;
  }
  return out;
}

}  // namespace troupe
