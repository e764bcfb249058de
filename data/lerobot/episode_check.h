#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "data/lerobot/dataset_problem.h"
#include "data/lerobot/lerobot_dataset.h"
#include "data/lerobot/modality.h"
#include "data/lerobot/parquet_table.h"
#include "data/video/image_size.h"

namespace troupe::data {

/// Rows [first, next run's first) carry this language label.
struct LabelRun {
  std::int64_t first = 0;
  std::int64_t label = 0;
};

/// One usable episode.
struct Episode {
  /// episode_index of the metadata.
  std::int64_t index = 0;
  /// Place in LerobotDataset::episodes().
  std::size_t place = 0;
  /// Table rows of the episode.
  std::int64_t rows = 0;
  /// Rows that have a frame in every view; samples come from these only.
  std::int64_t length = 0;
  /// Pixels of every view.
  std::int64_t view_height = 0, view_width = 0;
  /// Ascending, the first at row 0: every table row has a label.
  std::vector<LabelRun> labels;
  /// XXH3-64 over the names, sizes and, in shared files, places of its files: part of the fingerprint.
  std::uint64_t files_hash = 0;

  /// The label of every one of the `length` rows.
  std::vector<std::int64_t> row_labels() const;
};

/// Everything needed to check and read the episodes of one dataset. Copies share files and caches; const functions are
/// thread-safe.
struct EpisodeSource {
  std::shared_ptr<const LerobotDataset> files;
  SampleColumns columns;
  VideoProbe probe;
  std::shared_ptr<ParquetFiles> tables;

  /// A source with its own caches: every video file is probed once, tables of many episodes stay open. An empty `probe`
  /// is probe_video.
  static EpisodeSource make(std::shared_ptr<const LerobotDataset> files, SampleColumns columns, VideoProbe probe = {});

  const std::string& root() const { return files->root(); }
  const LerobotInfo& info() const { return files->info(); }
  const std::map<std::int64_t, std::string>& tasks() const { return files->tasks(); }

  /// The vector columns that samples use, and the columns of labels.
  TableColumns sample_table() const;
  /// The rows of an episode that check_episode found, whatever else its file holds. Errors: as read_parquet.
  Result<EpisodeTable> read_table(const Episode& episode, const TableColumns& wanted) const;
  /// Where the frames of a view are. Errors: as LerobotDataset::images.
  Result<ImageSource> images(const Episode& episode, const NamedColumn& view) const;
};

/// What checking one episode found: usable when `problems` is empty.
struct EpisodeCheck {
  Episode episode;
  /// Its table has no problem, whatever its videos have.
  bool table_sound = false;
  std::vector<DatasetProblem> problems;
  std::vector<DatasetProblem> warnings;
  /// Size of the first image of every view that is a column of images, by the view's column.
  std::map<std::string, ImageSize> image_sizes;
};

/// Reads the rows of files->episodes()[place] and probes its videos: D02 tasks of the metadata that contradict the rows
/// (warning), D03 unreadable Parquet, D04 wrong contents, D05 timestamps (warning), D06 bad video or frame, or an image
/// of another size than the view's first, D07 frame count, D08 frame rate (warning), D09 views of different sizes, D10
/// uneven, negative or hidden times (warning), D11 labels without a text (an empty or placeholder text is a warning).
/// Lists every problem of the episode, not just the first. Thread-safe.
EpisodeCheck check_episode(const EpisodeSource& source, std::size_t place);

/// D02 warning: the metadata list tasks of the episode, and its rows have another. It depends on the metadata alone.
std::optional<DatasetProblem> check_listed_tasks(const EpisodeSource& source, const Episode& episode);

}  // namespace troupe::data
