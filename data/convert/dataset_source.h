#pragma once

// Internal to data/convert: one dataset as the converter reads it. Unlike a dataset for training it keeps what
// it does not understand: unknown keys, extra columns, statistics, discarded episodes.
#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "data/convert/table_rows.h"
#include "data/lerobot/lerobot_info.h"
#include "data/lerobot/lerobot_meta.h"

namespace troupe {

/// JSON that keeps the order of its keys.
using JsonDoc = nlohmann::ordered_json;

/// Pictures of one camera of an episode.
struct SourceVideo {
  std::string path;
  std::int64_t first = 0;    ///< in presentation order
  std::int64_t frames = -1;  ///< -1: to the file's end
};

struct SourceEpisode {
  std::int64_t index = 0, length = 0;
  std::vector<std::string> tasks;
  std::string table;  ///< Parquet file
  std::int64_t first_row = 0;
  std::vector<SourceVideo> videos;  ///< as DatasetSource::cameras
  JsonDoc extra;                    ///< keys that LeRobot does not define; null when there are none
  std::int64_t stats_at = -1;       ///< v2: offset of its line; v3: row of the episodes tables; -1: none
};

/// Metadata of one dataset. Not thread-safe for stats(); everything else is immutable once open.
class DatasetSource {
 public:
  /// `root`: a folder with meta/info.json. Errors: not_found, data_loss, invalid_argument; all name the file.
  static Result<DatasetSource> open(const std::string& root);

  std::string root;
  LerobotInfo facts;
  JsonDoc info;
  std::vector<std::string> cameras;  ///< video features that have files
  std::vector<std::string> cameras_without_files;
  std::map<std::int64_t, std::string> tasks;
  std::vector<SourceEpisode> episodes;  ///< ascending index
  JsonDoc dataset_stats;                ///< meta/stats.json; null when there is none
  std::string metadata_hash;
  std::vector<std::string> notes;

  /// Statistics of an episode as episodes_stats.jsonl has them; null when there are none. Ascending calls are one pass.
  Result<JsonDoc> stats(const SourceEpisode& episode);

 private:
  Result<void> find_cameras(const std::vector<EpisodeRecord>& records);
  Result<void> place(const std::vector<EpisodeRecord>& records);
  Result<void> read_v2_extras();
  Result<void> read_v2_stats();
  Result<void> read_v3_extras();

  struct StatsFile {
    std::string path;
    std::int64_t first_row = 0, rows = 0;
  };
  std::vector<StatsFile> stats_files_;
  std::shared_ptr<RowReader> stats_rows_;
};

/// A file of JSON. Errors: not_found, data_loss, invalid_argument; all name the file.
Result<JsonDoc> read_json_file(const std::string& path);

}  // namespace troupe
