#pragma once

// Internal to data/convert: one dataset as the converter reads it. Unlike a dataset for training it keeps what
// it does not understand: unknown keys, extra columns, statistics, discarded episodes.
#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/result.h"
#include "data/convert/doubtful_cameras.h"
#include "data/convert/table_rows.h"
#include "data/lerobot/lerobot_dataset.h"

namespace troupe::data {

/// JSON that keeps the order of its keys.
using JsonDoc = nlohmann::ordered_json;

/// Frames of one camera of an episode.
struct SourceVideo {
  std::string path;
  /// Presentation index, in the file, of the frame of the episode's row 0.
  std::int64_t first = 0;
  /// Frames that belong to the episode; -1: all up to the file's end.
  std::int64_t frames = -1;
};

/// One episode of a source: what the metadata say of it and where its files are. Paths begin with the source's root.
struct SourceEpisode {
  std::int64_t index = 0, length = 0;
  std::vector<std::string> tasks;
  /// Path of the Parquet file that holds the rows [first_row, first_row + length).
  std::string table;
  std::int64_t first_row = 0;
  /// One per entry of DatasetSource::cameras, in that order.
  std::vector<SourceVideo> videos;
  /// Keys that LeRobot does not define; null when there are none.
  JsonDoc extra;
  /// v2: offset of its line; v3: row of the episodes tables; -1: none.
  std::int64_t stats_at = -1;
  /// What a repair could not mend.
  std::vector<DatasetProblem> problems{};
};

/// Metadata of one dataset. Not thread-safe for stats(); everything else is immutable once open.
class DatasetSource {
 public:
  /// `root`: a folder with meta/info.json. Errors: not_found, data_loss, invalid_argument; all name the file.
  static Result<DatasetSource> open(const std::string& root);

  /// Normalised, without a slash at the end.
  std::string root;
  /// The same as training sees it, discarded episodes and dropped cameras included; null: a repair, which believes the
  /// files more than their metadata.
  std::shared_ptr<const LerobotDataset> files;
  /// meta/info.json parsed, and as it is written, unknown keys included.
  LerobotInfo facts;
  JsonDoc info;
  /// Features of dtype video of which some file exists, in the order of info.json.
  std::vector<std::string> cameras;
  std::vector<DoubtfulCamera> doubtful_cameras;
  /// Cameras that drop_camera() took.
  std::vector<std::string> dropped;
  /// task_index -> text.
  std::map<std::int64_t, std::string> tasks;
  /// Ascending index.
  std::vector<SourceEpisode> episodes;
  /// meta/stats.json; null when there is none.
  JsonDoc dataset_stats;
  /// XXH3-128, in hex, over names, sizes and contents of all files below meta/.
  std::string metadata_hash;
  /// Sentences for the report: findings D15 and statistics that cannot be carried.
  std::vector<std::string> notes;

  /// Forgets a camera, as if the dataset had never had it: in features, episodes and statistics.
  void drop_camera(const std::string& name);

  /// Statistics of an episode as episodes_stats.jsonl has them; null when there are none. Ascending calls are one pass.
  Result<JsonDoc> stats(const SourceEpisode& episode);

 private:
  Result<void> find_cameras();
  void find_doubtful_cameras();
  Result<void> place();
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

/// A digest of every file below meta/, names and contents. Errors: data_loss.
Result<std::string> hash_metadata(const std::string& root);

/// A file of JSON. Errors: not_found, data_loss, invalid_argument; all name the file.
Result<JsonDoc> read_json_file(const std::string& path);

}  // namespace troupe::data
