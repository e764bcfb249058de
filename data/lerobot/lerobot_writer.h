#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "data/image/video_frame.h"

namespace troupe {

/// A column of numbers that a dataset has beside those of every dataset.
struct LerobotColumn {
  enum class Type : std::uint8_t { float32, boolean };
  std::string name;                  ///< "observation.state"
  std::size_t width = 1;             ///< numbers per row; 1: a plain column, else lists of fixed size
  std::vector<std::string> names{};  ///< of each number; empty: none
  Type type = Type::float32;
};

/// What a dataset holds: the same for all of its episodes.
struct LerobotDescription {
  std::string robot_type;
  double fps = 10;                     ///< rows per second
  std::vector<LerobotColumn> columns;  ///< in the order of the tables
  std::vector<std::string> cameras{};  ///< features of dtype video: "observation.images.front"
  std::int64_t height = 0, width = 0;  ///< pixels of every camera; even
  std::int64_t gop = 12;               ///< a key picture every so many
  std::int64_t crf = 15;               ///< x264's constant quality
};

/// One episode as it is handed over. Views and functions are used during append() only.
struct LerobotEpisode {
  std::int64_t length = 0;      ///< rows, at least one
  std::int64_t task_index = 0;  ///< LerobotWriter::task_index
  std::vector<std::span<const float>>
      columns;  ///< of each LerobotDescription::columns, [length, width]; booleans 0 or 1
  /// Picture of a camera at a row; valid until the next call. Asked camera by camera, rows ascending.
  std::function<Result<Rgb8View>(std::size_t camera, std::int64_t row)> picture{};
};

/// Writes a LeRobot v2.1 dataset: one Parquet file (one row group, Snappy) and one H.264 file per camera and episode, with
/// the statistics of every episode. Tables have the description's columns, then timestamp, frame_index, episode_index, index,
/// task_index. The same episodes give the same bytes. Not thread-safe; it keeps a line per episode in memory.
class LerobotWriter {
 public:
  /// `folder` exists and is empty: see NewFolder.
  /// Errors: invalid_argument (no rate, a column without width or with another number of names, cameras without even sides).
  static Result<LerobotWriter> begin(std::string folder, LerobotDescription description);

  /// The index of an instruction; new ones are numbered in the order of asking.
  std::int64_t task_index(const std::string& text);
  /// Errors: invalid_argument (a column of another size, no such task), those of `picture`; resource_exhausted, unavailable.
  Result<void> append(const LerobotEpisode& episode);
  /// Writes meta/. Nothing may be appended after it. Errors: failed_precondition (no episodes); as append.
  Result<void> finish();

  std::int64_t episodes() const { return episodes_; }
  std::int64_t frames() const { return frames_; }
  const std::vector<std::string>& tasks() const { return tasks_; }

 private:
  LerobotWriter(std::string folder, LerobotDescription description);
  Result<void> check(const LerobotEpisode& episode) const;
  std::string info() const;  ///< meta/info.json

  std::string folder_;
  LerobotDescription description_;
  std::vector<std::string> tasks_;
  std::string episode_lines_, stats_lines_;  ///< of meta/episodes.jsonl, meta/episodes_stats.jsonl
  std::int64_t episodes_ = 0, frames_ = 0;
};

}  // namespace troupe
