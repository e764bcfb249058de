#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace troupe {

/// One column or camera of a LeRobot dataset.
struct LerobotFeature {
  std::string name;
  std::string dtype;                ///< float32, float64, int8..int64, uint8, bool, string, image, video
  std::vector<std::int64_t> shape;  ///< scalars are [1]; cameras [H, W, C] whatever order `names` had
  bool is_video() const { return dtype == "video"; }
  bool is_vector() const { return dtype == "float32" || dtype == "float64"; }
};

/// meta/info.json of LeRobot v2.0 and v2.1. Counts are what the file says, not what exists (data.md 1.2).
struct LerobotInfo {
  std::string codebase_version;
  std::string robot_type;
  std::int64_t total_episodes = -1;  ///< -1: not stated
  std::int64_t total_frames = -1;
  std::int64_t total_tasks = -1;
  std::int64_t chunks_size = 1000;  ///< episodes per chunk folder
  double fps = 0;
  std::string data_path;                 ///< template with {episode_chunk}, {episode_index}, {video_key}
  std::string video_path;                ///< empty: the dataset has no videos
  std::vector<LerobotFeature> features;  ///< in the order of the file
  std::vector<std::int64_t> discarded_episodes;

  /// The feature of that name, or null. Valid while this object lives.
  const LerobotFeature* find(std::string_view name) const;
};

/// Parses the text of info.json; `path` names it in errors. Unknown keys are ignored. Accepts the pre-release form
/// whose template is videos.videos_path. Errors: invalid_argument (not JSON, a version other than v2.0 and v2.1, an
/// unknown dtype, no template).
Result<LerobotInfo> parse_lerobot_info(const std::string& text, const std::string& path);

/// Reads <root>/meta/info.json. Errors: not_found, data_loss, and those above.
Result<LerobotInfo> read_lerobot_info(const std::string& root);

/// Fills a path template: {episode_chunk}, {episode_index}, {video_key}, each plain or with a width such as :06d.
/// Errors: invalid_argument (an unknown field or format).
Result<std::string> fill_path_template(std::string_view text, std::int64_t chunk, std::int64_t episode,
                                       std::string_view video_key);

}  // namespace troupe
