#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace troupe::data {

/// One column or camera of a LeRobot dataset.
struct LerobotFeature {
  std::string name;
  /// float16..float64, int8..int64, uint8..uint64, bool, string, image, video.
  std::string dtype;
  /// Scalars are [1]; cameras [H, W, C] whatever order `names` had.
  std::vector<std::int64_t> shape;
  /// A camera whose frames are distances, not colours.
  bool is_depth = false;
  /// What the numbers of a row are, such as joints: one name each, or none at all.
  std::vector<std::string> names{};
  /// How many names info.json gives them; `names` is empty unless that is one each.
  std::int64_t stated_names = 0;
  bool is_video() const { return dtype == "video"; }
  bool is_image() const { return dtype == "image"; }
  bool is_camera() const { return is_video() || is_image(); }
  bool is_vector() const { return dtype == "float32" || dtype == "float64"; }
  /// One or more numbers a row: what a state or an action can be made of.
  bool is_numbers() const { return !is_camera() && dtype != "string" && shape.size() <= 1; }
  /// Numbers a row, of what is no camera.
  std::int64_t width() const { return shape.empty() ? 1 : shape[0]; }
};

/// meta/info.json of LeRobot v2.0, v2.1 and v3.0. Counts are what the file says, not what exists.
struct LerobotInfo {
  /// "v2.0", "v2.1" or "v3.0".
  std::string codebase_version;
  std::string robot_type;
  /// Counts as stated; -1: not stated.
  std::int64_t total_episodes = -1;
  std::int64_t total_frames = -1;
  std::int64_t total_tasks = -1;
  std::int64_t total_videos = -1;
  std::int64_t total_chunks = -1;
  /// v2: episodes, v3: files per chunk folder.
  std::int64_t chunks_size = 1000;
  /// Table rows, and frames of every camera, per second.
  double fps = 0;
  /// Template, see fill_path_template.
  std::string data_path;
  /// The same for videos; empty: the dataset has none.
  std::string video_path;
  /// In the order of the file.
  std::vector<LerobotFeature> features;
  /// discarded_episode_indices: episodes that are listed and must not be used.
  std::vector<std::int64_t> discarded_episodes;
  /// The text of the file: what a converter carries over.
  std::string json;

  bool is_v3() const { return codebase_version == "v3.0"; }
  /// The feature of that name, or null. Valid while this object lives.
  const LerobotFeature* find(std::string_view name) const;
};

/// Parses the text of info.json; `path` names it in errors. Unknown keys are ignored. Accepts the pre-release form
/// whose template is videos.videos_path. Errors: invalid_argument (not JSON, a version other than v2.0, v2.1 and v3.0,
/// an unknown dtype, no template, a template that leaves the dataset's folder or has a control character).
Result<LerobotInfo> parse_lerobot_info(const std::string& text, const std::string& path);

/// Reads <root>/meta/info.json. Errors: not_found, data_loss, and those above.
Result<LerobotInfo> read_lerobot_info(const std::string& root);

/// What path templates may name. v2 knows episode_chunk and episode_index, v3 chunk_index and file_index, both
/// video_key; a negative number is a field that this version does not have.
struct PathFields {
  std::int64_t episode_chunk = -1, episode_index = -1;
  std::int64_t chunk_index = -1, file_index = -1;
  std::string_view video_key{};

  /// The fields of episode `index` of a v2 dataset.
  static PathFields of_episode(const LerobotInfo& info, std::int64_t index, std::string_view video_key = {}) {
    return {.episode_chunk = index / info.chunks_size, .episode_index = index, .video_key = video_key};
  }
  /// The fields of a file of a v3 dataset.
  static PathFields of_file(std::int64_t chunk, std::int64_t file, std::string_view video_key = {}) {
    return {.chunk_index = chunk, .file_index = file, .video_key = video_key};
  }
};

/// Fills a path template: each field plain, or with a width such as {file_index:03d}.
/// Errors: invalid_argument (an unknown field or format, a field that this version does not have, a video_key that is
/// more than one path component or has a control character, a name of more than 255 bytes).
Result<std::string> fill_path_template(std::string_view text, const PathFields& fields);

}  // namespace troupe::data
