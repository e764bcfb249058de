#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "workers/data/lerobot/lerobot_info.h"
#include "workers/data/lerobot/lerobot_meta.h"
#include "workers/data/lerobot/modality.h"
#include "workers/data/lerobot/parquet_table.h"
#include "workers/data/video/video_file.h"

namespace troupe {

/// Something wrong with a dataset; codes are those of data.md 6.3 ("D06").
struct DatasetProblem {
  std::string code;
  std::string path;  ///< the file, or the dataset's folder
  std::string text;  ///< a sentence that names the file
};

/// Rows [first, next run's first) carry this language label.
struct LabelRun {
  std::int64_t first = 0;
  std::int64_t label = 0;
};

/// One usable episode.
struct Episode {
  std::int64_t index = 0;   ///< episode_index
  std::int64_t rows = 0;    ///< rows of the table
  std::int64_t length = 0;  ///< rows that have a picture in every view; samples come from these only
  std::int64_t view_height = 0, view_width = 0;  ///< pixels of every view
  std::vector<LabelRun> labels;
  std::uint64_t files_hash = 0;  ///< over names and sizes of its files

  /// The label of every one of the `length` rows.
  std::vector<std::int64_t> row_labels() const;
};

/// How a video file is looked at; probe_video unless a test says otherwise.
using VideoProbe = std::function<Result<VideoInfo>(const std::string& path)>;

/// Everything needed to check and read the episodes of one dataset.
struct EpisodeSource {
  std::string root;
  LerobotInfo info;
  SampleColumns columns;
  std::map<std::int64_t, std::string> tasks;
  VideoProbe probe;

  Result<std::string> parquet_path(std::int64_t episode) const;
  Result<std::string> video_path(std::int64_t episode, const NamedColumn& view) const;
  /// The vector columns that samples use, and the label column.
  TableColumns sample_table() const;
};

/// What checking one episode found: usable when `problems` is empty.
struct EpisodeCheck {
  Episode episode;
  std::vector<DatasetProblem> problems;
  std::vector<DatasetProblem> warnings;
};

/// Reads the episode's table and probes its videos: D03 unreadable Parquet, D04 wrong contents, D05 timestamps
/// (warning), D06 bad video, D07 frame count, D08 frame rate (warning), D09 views of different sizes, D11 labels
/// without a text (an empty or placeholder text is a warning). Lists every problem of the episode, not just the first.
/// Thread-safe.
EpisodeCheck check_episode(const EpisodeSource& source, const EpisodeRecord& record);

}  // namespace troupe
