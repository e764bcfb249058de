#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "data/lerobot/defects.h"
#include "data/lerobot/modality.h"
#include "data/statistics/table_statistics.h"

namespace troupe::data {

/// One thing found in a dataset.
struct HealthFinding {
  /// One of defects(): "D06".
  std::string code;
  FindingLevel level = FindingLevel::note;
  /// The file, or the dataset's folder.
  std::string path;
  /// A sentence that names the file.
  std::string text;
  /// episode_index; -1: the dataset as a whole.
  std::int64_t episode = -1;
  /// Further episodes in which the same file has the same cause, ascending.
  std::vector<std::int64_t> others{};

  /// The text, and how many more episodes it is about.
  std::string sentence() const;
};

/// Makes one finding of those that have code, level, file and cause (cause_of) in common: a file that many episodes
/// share is one finding. The first one stays, in its place.
void group_findings(std::vector<HealthFinding>& findings);

/// Least, middle and greatest of some numbers, and their mean; zeros when there are none.
struct Spread {
  double min = 0, median = 0, max = 0, mean = 0;
};
/// The median of an even count is the mean of both in the middle.
Spread spread_of(std::vector<double> values);

/// The video files of one camera.
struct CameraReport {
  /// Short name of the view, and the feature of info.json.
  std::string name, feature;
  std::int64_t files = 0, frames = 0, bytes = 0;
  /// Number of files by codec ("h264"), size ("640x480") and frames per second ("30").
  std::map<std::string, std::int64_t> codecs, sizes, rates;
  /// The camera's images are cells of the tables, not a video.
  bool in_parquet = false;
  /// Some file has B-frames.
  bool reordered = false;
  /// Frames between key frames, over all files.
  Spread gop;
};

/// One episode: usable when `problems` is 0.
struct EpisodeReport {
  std::int64_t index = 0, rows = 0;
  std::int64_t problems = 0, warnings = 0;
  /// Runs of rows with one label.
  std::int64_t spans = 0;
  /// Rows whose state equals the row before, as float32.
  std::int64_t idle_rows = 0;
  /// Most idle rows one after the other.
  std::int64_t longest_idle = 0;
  /// Values more than 3 (q99 - q01) outside [q01, q99].
  std::int64_t outliers = 0;
  /// Steps of more than half of q99 - q01, in dimensions with more than three levels.
  std::int64_t jumps = 0;
  /// XXH3-128 over states and actions (EpisodeMotion::content); empty: not read.
  std::string content;
};

/// How a report calls dimension d: "[3]", or "[3] elbow" where it has a name.
std::string dimension_label(const std::vector<std::string>& names, std::size_t d);
/// Several of them: "[3] elbow, [4] wrist".
std::string dimension_labels(const std::vector<std::string>& names, const std::vector<std::size_t>& dims);

/// How often values of one dimension occur: counts of equal parts of [low, high], the last part closed. Values outside
/// count in the first or last part.
struct Histogram {
  double low = 0, high = 0;
  std::vector<std::int64_t> counts;
};

/// A column with its statistics.
struct ColumnReport {
  std::string name;
  /// As info.json states it: "float32".
  std::string dtype;
  /// LerobotFeature::names: joints, or empty.
  std::vector<std::string> names{};
  FeatureStatistics statistics;
  /// One per dimension of the column; the next two list dimensions.
  std::vector<Histogram> histograms;
  /// Dimensions with min = max.
  std::vector<std::size_t> constant;
  /// Other dimensions with q01 = q99, or with q99 - q01 below a millionth of max(|min|, |max|).
  std::vector<std::size_t> near_constant;
};

/// A relative action key with its statistics: of action[t+j] - state[t], 0 <= j < HealthReport::horizon.
struct RelativeReport {
  VectorKey action, state;
  RelativeStatistics statistics;
};

/// What decoding every frame of one video file or image column found (--verify full).
struct DecodedFile {
  std::string path, camera;
  std::int64_t frames = 0, bytes = 0;
  /// The first error; empty: everything was decoded.
  std::string error;
};
/// What decoding every frame of the dataset found and took.
struct DecodeReport {
  /// Ascending by path.
  std::vector<DecodedFile> files;
  std::int64_t frames = 0;
  /// Wall time.
  double seconds = 0;
};

/// A small image of one frame of one camera, for the HTML report.
struct Thumbnail {
  std::string camera;
  /// episode_index, and the frame's place in the episode.
  std::int64_t episode = 0, frame = 0;
  std::int64_t width = 0, height = 0;
  /// The bytes of a PNG file of width x height pixels.
  std::string png;
};

/// The values of one column over an episode, for the HTML report.
struct ColumnTrace {
  std::string column;
  /// As ColumnReport::names.
  std::vector<std::string> names{};
  /// Since the episode's first row.
  std::vector<double> seconds{};
  /// Per dimension, one value a second's entry.
  std::vector<std::vector<double>> values{};
};

/// One episode up close, for the HTML report.
struct EpisodeCloseup {
  /// episode_index.
  std::int64_t episode = 0;
  /// The camera that the clip shows, and an MP4 file's bytes that play at the episode's pace; empty: no clip, and why.
  std::string camera{}, clip{}, no_clip{};
  std::vector<ColumnTrace> columns{};
};

/// Everything `troupe stats` knows of a dataset; the text, JSON and HTML reports are pure functions of it.
struct HealthReport {
  std::string root, version, robot_type, verify = "index";
  double fps = 0;
  /// Rows of usable episodes, and of all whose tables are sound, whatever their videos are: statistics are of these.
  std::int64_t frames = 0, table_rows = 0;
  std::int64_t tasks = 0, horizon = 24;
  /// Pixels of every view of the first usable episode; without one, what info.json says of the first view.
  std::int64_t view_height = 0, view_width = 0;
  /// How quantiles were found: values kept in memory, else by refinement in `passes` passes over the tables.
  bool columns_kept = true, relative_kept = true;
  std::int64_t passes = 0;
  std::vector<ColumnReport> columns;
  /// State and action keys whose slices of the columns are reported, cameras, and the columns of labels.
  SampleColumns keys;
  std::vector<RelativeReport> relative;
  std::vector<CameraReport> cameras;
  std::vector<EpisodeReport> episodes;
  /// Label -> rows, of episodes whose tables are sound.
  std::map<std::int64_t, std::int64_t> label_rows;
  /// Label -> text.
  std::map<std::int64_t, std::string> texts;
  /// Lengths in table rows of every run of rows with one label, of episodes whose tables are sound.
  std::vector<double> span_lengths;
  std::vector<HealthFinding> findings;
  DecodeReport decoded;
  std::vector<Thumbnail> thumbnails;
  std::vector<EpisodeCloseup> closeups;

  double hours() const { return fps > 0 ? static_cast<double>(frames) / fps / 3600 : 0; }
  /// Episodes without a problem.
  std::int64_t usable_episodes() const;
  /// Findings of that level.
  std::int64_t count(FindingLevel level) const;
  /// What the dimensions of a key are called: the slice of its column's names; empty without names.
  std::vector<std::string> names_of(const VectorKey& key) const;
  /// The column of that name, or null.
  const ColumnReport* column(const std::string& name) const;
};

}  // namespace troupe::data
