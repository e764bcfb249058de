#include "data/lerobot/lerobot_info.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "data/lerobot/file_checks.h"
#include "data/lerobot/json_number.h"
#include "data/lerobot/json_text.h"

namespace troupe::data {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::int64_t kLargestSize = std::int64_t{1} << 31;

/// Rates beyond these have no fraction that a container holds.
constexpr double kLeastFps = 0.001, kMostFps = 1e6;

/// Bytes of a file's or folder's name, on every file system that we know.
constexpr std::size_t kLongestName = 255;

/// For messages: in quotes, control characters written out.
std::string in_quotes(std::string_view text) { return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace); }

/// Control characters, which no path of a dataset has; a zero byte would end it.
bool has_control(std::string_view text) {
  return std::any_of(text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; });
}

/// Files of a dataset lie in its folder; anything else is a damaged or a hostile info.json.
Result<void> check_template(const char* key, const std::string& text) {
  if (has_control(text))
    return invalid_argument(fmt::format("{} is {}, which has a control character", key, in_quotes(text)));
  const std::filesystem::path path(text);
  const bool leaves = path.is_absolute() || std::find(path.begin(), path.end(), "..") != path.end();
  if (!leaves) return {};
  return invalid_argument(fmt::format("{} is '{}', which leaves the dataset's folder", key, text));
}

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

/// Texts in nested lists and objects, in order: ["a", "b"], [["a", "b"]], {"motors": ["a", "b"]}. An object of numbers,
/// {"a": 0, "b": 1}, names by place.
void collect_names(const Json& json, std::vector<std::string>& out, int depth = 0) {
  if (json.is_string()) out.push_back(json.get<std::string>());
  if (!json.is_structured() || depth > 3) return;
  std::map<std::int64_t, std::string> placed;
  for (const auto& [key, value] : json.items()) {
    if (json.is_object() && value.is_number_integer()) placed.emplace(value.get<std::int64_t>(), key);
    collect_names(value, out, depth + 1);
  }
  for (const auto& [place, name] : placed) out.push_back(name);
}

/// What a column of numbers calls them.
void read_names(const Json& json, LerobotFeature& feature) {
  if (json.contains("names")) collect_names(json["names"], feature.names);
  feature.stated_names = static_cast<std::int64_t>(feature.names.size());
  if (feature.stated_names != feature.width()) feature.names.clear();
}

/// LeRobot writes it into `info`, v2.0 ports into `video_info`.
bool says_depth(const Json& feature) {
  for (const char* detail : {"info", "video_info"}) {
    if (!feature.contains(detail) || !feature[detail].is_object()) continue;
    const auto& json = feature[detail];
    for (const char* key : {"video.is_depth_map", "is_depth_map"}) {
      if (json.contains(key) && json[key].is_boolean()) return json[key];
    }
  }
  return false;
}

/// A whole number of info.json; `fallback` where there is none, or null.
Result<std::int64_t> optional_number(const Json& json, const char* key, std::int64_t fallback) {
  if (!json.contains(key) || json[key].is_null()) return fallback;
  return whole_number(json, key);
}

Result<LerobotFeature> parse_feature(const std::string& name, const Json& value) {
  static const std::set<std::string> known = {"float16", "float32", "float64", "int8",   "int16",
                                              "int32",   "int64",   "uint8",   "uint16", "uint32",
                                              "uint64",  "bool",    "string",  "image",  "video"};
  if (!value.is_object()) return invalid_argument(fmt::format("feature '{}' is no object with dtype and shape", name));
  LerobotFeature feature{.name = name, .dtype = value.value("dtype", ""), .shape = {}};
  if (known.count(feature.dtype) == 0) {
    return invalid_argument(fmt::format("feature '{}' has dtype '{}', which is not known", name, feature.dtype));
  }
  if (value.contains("shape") && value["shape"].is_array()) {
    auto shape = whole_numbers(value, "shape");
    if (!shape) return shape.error().with(fmt::format("feature '{}'", name));
    feature.shape = std::move(*shape);
  }
  if (feature.shape.empty()) feature.shape = {1};
  for (const std::int64_t size : feature.shape) {
    if (size < 0 || size > kLargestSize) {
      return invalid_argument(fmt::format("feature '{}' has a shape with {} in it", name, size));
    }
  }
  if (feature.is_camera()) {
    feature.shape = camera_shape(feature.shape, value);
    feature.is_depth = says_depth(value);
  } else if (feature.shape.size() == 1) {
    read_names(value, feature);
  }
  return feature;
}

Result<LerobotInfo> parse_fields(const Json& json) {
  LerobotInfo info;
  info.codebase_version = json.value("codebase_version", "");
  if (info.codebase_version != "v2.0" && info.codebase_version != "v2.1" && info.codebase_version != "v3.0") {
    return invalid_argument(
        fmt::format("codebase_version is '{}'; v2.0, v2.1 and v3.0 are read", info.codebase_version));
  }
  if (json.contains("robot_type") && json["robot_type"].is_string()) info.robot_type = json["robot_type"];
  TROUPE_ASSIGN(info.total_episodes, optional_number(json, "total_episodes", -1));
  TROUPE_ASSIGN(info.total_frames, optional_number(json, "total_frames", -1));
  TROUPE_ASSIGN(info.total_tasks, optional_number(json, "total_tasks", -1));
  TROUPE_ASSIGN(info.total_videos, optional_number(json, "total_videos", -1));
  TROUPE_ASSIGN(info.total_chunks, optional_number(json, "total_chunks", -1));
  TROUPE_ASSIGN(info.chunks_size, optional_number(json, "chunks_size", 1000));
  if (info.chunks_size < 1)
    return invalid_argument(fmt::format("chunks_size is {}; it is at least 1", info.chunks_size));
  if (json.contains("fps") && !json["fps"].is_number())
    return invalid_argument(fmt::format("fps is {}; a number is wanted", text_of_value(json["fps"])));
  info.fps = json.value("fps", 0.0);
  if (!(info.fps >= kLeastFps && info.fps <= kMostFps)) {
    return invalid_argument(
        fmt::format("fps is {}; {} to {} rows and frames per second are read", info.fps, kLeastFps, kMostFps));
  }
  info.data_path = json.value("data_path", "");
  if (info.data_path.empty()) return invalid_argument("data_path, the template of the Parquet files, is missing");
  if (json.contains("video_path") && json["video_path"].is_string()) {
    info.video_path = json["video_path"];
  } else if (json.contains("videos") && json["videos"].is_object()) {
    info.video_path = json["videos"].value("videos_path", "");
  }
  TROUPE_TRY(check_template("data_path", info.data_path));
  TROUPE_TRY(check_template("video_path", info.video_path));
  if (json.contains("discarded_episode_indices") && !json["discarded_episode_indices"].is_null()) {
    TROUPE_ASSIGN(info.discarded_episodes, whole_numbers(json, "discarded_episode_indices"));
  }
  if (!json.contains("features") || !json["features"].is_object()) return invalid_argument("features is missing");
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
    return invalid_argument(fmt::format("path template '{}': the format ':{}' is not of the form :0Nd", text, spec));
  }
  return fmt::format("{:0{}}", value, std::stoi(std::string(spec.substr(1, spec.size() - 2))));
}

Result<std::int64_t> number_of(std::string_view name, const PathFields& fields, std::string_view text) {
  const std::pair<std::string_view, std::int64_t> known[] = {{"episode_chunk", fields.episode_chunk},
                                                             {"episode_index", fields.episode_index},
                                                             {"chunk_index", fields.chunk_index},
                                                             {"file_index", fields.file_index}};
  std::string there = "video_key";
  for (const auto& [field, value] : known) {
    if (value < 0) continue;
    if (field == name) return value;
    there += fmt::format(", {}", field);
  }
  return invalid_argument(fmt::format("path template '{}' names '{}'; {} are known", text, name, there));
}

/// A feature's name is one folder of a path.
Result<void> check_video_key(std::string_view key) {
  if (key.find('/') == std::string_view::npos && key != ".." && !has_control(key)) return {};
  return invalid_argument(fmt::format("camera {} cannot be part of a path", in_quotes(key)));
}

}  // namespace

const LerobotFeature* LerobotInfo::find(std::string_view name) const {
  const auto it =
      std::find_if(features.begin(), features.end(), [&](const LerobotFeature& f) { return f.name == name; });
  return it == features.end() ? nullptr : &*it;
}

Result<LerobotInfo> parse_lerobot_info(const std::string& text, const std::string& path) {
  try {
    const auto json = parse_json<Json>(text);
    if (!json) return json.error().with(path);
    auto info = parse_fields(*json);
    if (!info) return info.error().with(path);
    info->json = text;
    return info;
  } catch (const nlohmann::json::exception& e) {
    return invalid_argument(fmt::format("{}: {}", path, e.what()));
  }
}

Result<LerobotInfo> read_lerobot_info(const std::string& root) {
  const std::string path = root + "/meta/info.json";
  TROUPE_ASSIGN(const std::string text, read_text_file(path));
  return parse_lerobot_info(text, path);
}

Result<std::string> fill_path_template(std::string_view text, const PathFields& fields) {
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    if (text[i] != '{') {
      out += text[i++];
      continue;
    }
    const std::size_t end = text.find('}', i);
    if (end == std::string_view::npos) {
      return invalid_argument(fmt::format("path template '{}' has a '{{' without a '}}'", text));
    }
    const std::string_view field = text.substr(i + 1, end - i - 1);
    const std::string_view name = field.substr(0, field.find(':'));
    const std::string_view spec = name.size() == field.size() ? std::string_view{} : field.substr(name.size() + 1);
    if (name == "video_key") {
      TROUPE_TRY(check_video_key(fields.video_key));
      out += fields.video_key;
    } else {
      TROUPE_ASSIGN(const std::int64_t number, number_of(name, fields, text));
      TROUPE_ASSIGN(const std::string value, format_field(number, spec, text));
      out += value;
    }
    i = end + 1;
  }
  for (std::size_t begin = 0; begin < out.size();) {
    const std::size_t end = std::min(out.find('/', begin), out.size());
    if (end - begin > kLongestName) {
      return invalid_argument(
          fmt::format("path template '{:.80}' gives a name of {} bytes, '{:.40}...'; a file's name "
                      "has at most {}",
                      text, end - begin, std::string_view(out).substr(begin), kLongestName));
    }
    begin = end + 1;
  }
  return out;
}

}  // namespace troupe::data
