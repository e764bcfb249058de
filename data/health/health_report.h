#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "data/lerobot/defects.h"
#include "data/lerobot/modality.h"
#include "data/statistics/table_statistics.h"

namespace troupe {

/// One thing found in a dataset.
struct HealthFinding {
  std::string code;  ///< of defects()
  FindingLevel level = FindingLevel::note;
  std::string path;           ///< the file, or the dataset's folder
  std::string text;           ///< a sentence that names the file
  std::int64_t episode = -1;  ///< -1: of the dataset as a whole
};

/// Least, middle and greatest of some numbers, and their mean; zeros when there are none.
struct Spread {
  double min = 0, median = 0, max = 0, mean = 0;
};
/// The median of an even count is the mean of both in the middle.
Spread spread_of(std::vector<double> values);

/// The video files of one camera.
struct CameraReport {
  std::string name, feature;
  std::int64_t files = 0, pictures = 0, bytes = 0;
  std::map<std::string, std::int64_t> codecs, sizes, rates;  ///< "h264", "640x480", "30": how many files
  bool in_parquet = false;                                   ///< pictures are cells of the tables
  bool reordered = false;                                    ///< some file has B-frames
  Spread gop;                                                ///< pictures between key pictures, over all files
};

/// One episode: usable when `problems` is 0.
struct EpisodeReport {
  std::int64_t index = 0, rows = 0;
  std::int64_t problems = 0, warnings = 0;
  std::int64_t spans = 0;         ///< runs of rows with one label
  std::int64_t idle_rows = 0;     ///< rows whose state equals the row before, as float32
  std::int64_t longest_idle = 0;  ///< rows in a stretch
  std::int64_t outliers = 0;      ///< values more than 3 (q99 - q01) outside [q01, q99]
  std::int64_t jumps = 0;         ///< steps of more than half of q99 - q01, in dimensions with more than three levels
  std::string content;            ///< hash over states and actions; empty: not read
};

/// How often values of one dimension occur: counts of equal parts of [min, max].
struct Histogram {
  double low = 0, high = 0;
  std::vector<std::int64_t> counts;
};

/// A column with its statistics.
struct ColumnReport {
  std::string name;
  std::string dtype;
  FeatureStatistics statistics;
  std::vector<Histogram> histograms;  ///< one per dimension
  std::vector<std::size_t> constant;  ///< dimensions with min = max
  std::vector<std::size_t>
      near_constant;  ///< others with q01 = q99, or q99 - q01 below a millionth of max(|min|, |max|)
};

/// A relative action key with its statistics.
struct RelativeReport {
  VectorKey action, state;
  RelativeStatistics statistics;
};

/// What decoding every picture found (--verify full).
struct DecodedFile {
  std::string path, camera;
  std::int64_t pictures = 0, bytes = 0;
  std::string error;  ///< empty: everything was decoded
};
struct DecodeReport {
  std::vector<DecodedFile> files;  ///< by path
  std::int64_t pictures = 0;
  double seconds = 0;  ///< wall
};

/// A small picture of one camera for the HTML report.
struct Thumbnail {
  std::string camera;
  std::int64_t episode = 0, frame = 0;
  std::int64_t width = 0, height = 0;
  std::string png;  ///< the file's bytes
};

/// Everything `troupe stats` knows of a dataset.
struct HealthReport {
  std::string root, version, robot_type, verify = "index";
  double fps = 0;
  std::int64_t frames = 0, tasks = 0, horizon = 24;
  std::int64_t view_height = 0, view_width = 0;  ///< of the first usable episode
  bool columns_kept = true, relative_kept = true;
  std::int64_t passes = 0;
  std::vector<ColumnReport> columns;
  SampleColumns keys;  ///< state and action keys whose slices are reported
  std::vector<RelativeReport> relative;
  std::vector<CameraReport> cameras;
  std::vector<EpisodeReport> episodes;
  std::map<std::int64_t, std::int64_t> label_rows;  ///< label -> rows, of usable episodes
  std::map<std::int64_t, std::string> texts;        ///< label -> text
  std::vector<double> span_lengths;                 ///< rows of every label span
  std::vector<HealthFinding> findings;
  DecodeReport decoded;
  std::vector<Thumbnail> thumbnails;

  double hours() const { return fps > 0 ? static_cast<double>(frames) / fps / 3600 : 0; }
  std::int64_t usable_episodes() const;
  std::int64_t count(FindingLevel level) const;
  /// The column of that name, or null.
  const ColumnReport* column(const std::string& name) const;
};

}  // namespace troupe
