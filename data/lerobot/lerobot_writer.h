#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "image/video_frame.h"

namespace troupe::data {

/// A column of numbers that a dataset has beside those of every dataset.
struct LerobotColumn {
  enum class Type : std::uint8_t { float32, boolean };
  /// "observation.state".
  std::string name;
  /// Numbers per row; 1: a plain column, else lists of fixed size.
  std::size_t width = 1;
  /// A name for each number of a row, as features.NAME.names of info.json has them; empty: none.
  std::vector<std::string> names{};
  Type type = Type::float32;
};

/// What a dataset holds: the same for all of its episodes.
struct LerobotDescription {
  std::string robot_type;
  /// Table rows, and frames of every camera, per second.
  double fps = 10;
  /// In the order of the tables.
  std::vector<LerobotColumn> columns;
  /// Features of dtype video: "observation.images.front".
  std::vector<std::string> cameras{};
  /// Size in pixels of every camera's frames; both even.
  std::int64_t height = 0, width = 0;
  /// Frames from one key frame to the next.
  std::int64_t gop = 12;
  /// x264's constant rate factor; see VideoEncoderOptions::crf.
  std::int64_t crf = 15;
};

/// One episode as it is handed over. Views and functions are used during append() only.
struct LerobotEpisode {
  /// Table rows, at least one; every camera has as many frames.
  std::int64_t length = 0;
  /// LerobotWriter::task_index.
  std::int64_t task_index = 0;
  /// Values of each of LerobotDescription::columns, [length, width] row-major; booleans are 0 or 1.
  std::vector<std::span<const float>> columns;
  /// Frame of a camera at a row; valid until the next call. Asked camera by camera, rows ascending.
  std::function<Result<Rgb8View>(std::size_t camera, std::int64_t row)> image{};
};

/// Writes a LeRobot v2.1 dataset: one Parquet file (one row group, Snappy) and one H.264 file per camera and episode,
/// with the statistics of every episode. Tables have the description's columns, then timestamp, frame_index,
/// episode_index, index, task_index. The same episodes give the same bytes. Not thread-safe; it keeps a line per
/// episode in memory.
class LerobotWriter {
 public:
  /// `folder` exists and is empty: see NewFolder.
  /// Errors: invalid_argument (no rate, a column without width or with another number of names, cameras without even
  /// sides).
  static Result<LerobotWriter> begin(std::string folder, LerobotDescription description);

  /// The index of an instruction; new ones are numbered in the order of asking.
  std::int64_t task_index(const std::string& text);
  /// Errors: invalid_argument (a column of another size, no such task), those of `image`; resource_exhausted,
  /// unavailable.
  Result<void> append(const LerobotEpisode& episode);
  /// Writes meta/. Nothing may be appended after it. Errors: failed_precondition (no episodes); as append.
  Result<void> finish();

  /// Episodes and table rows appended so far.
  std::int64_t episodes() const { return episodes_; }
  std::int64_t frames() const { return frames_; }
  const std::vector<std::string>& tasks() const { return tasks_; }

 private:
  LerobotWriter(std::string folder, LerobotDescription description);
  Result<void> check(const LerobotEpisode& episode) const;
  /// meta/info.json.
  std::string info() const;

  std::string folder_;
  LerobotDescription description_;
  std::vector<std::string> tasks_;
  /// Of meta/episodes.jsonl, meta/episodes_stats.jsonl.
  std::string episode_lines_, stats_lines_;
  std::int64_t episodes_ = 0, frames_ = 0;
};

}  // namespace troupe::data
