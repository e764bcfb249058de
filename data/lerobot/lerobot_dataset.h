#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "data/lerobot/dataset_problem.h"
#include "data/lerobot/lerobot_info.h"
#include "data/lerobot/lerobot_meta.h"
#include "data/video/video_file.h"

namespace troupe::data {

/// Where the rows of an episode are: rows [first_row, first_row + EpisodeRecord::length) of a Parquet file.
struct RowSource {
  std::string path;
  std::int64_t first_row = 0;
};

/// Where the frames of one camera of an episode are: frame first + k of a video file in presentation order, or row
/// first + k of an image column.
struct ImageSource {
  std::string path;
  /// Presentation index, or table row, of the frame of the episode's row 0.
  std::int64_t first = 0;
  /// Image column of a Parquet file; empty: `path` is a video.
  std::string column;
  bool is_video() const { return column.empty(); }
};

/// How a video file is looked at; probe_video unless a test says otherwise. Called from several threads at once.
using VideoProbe = std::function<Result<VideoInfo>(const std::string& path)>;

/// What becomes of the episodes of discarded_episode_indices: training leaves them out, a converter keeps them.
enum class DiscardedEpisodes : std::uint8_t { left_out, kept };

/// One LeRobot dataset of version v2.0, v2.1 or v3.0 as it lies on disk: the same view of all three, without any
/// embodiment. Reads metadata only; files of episodes are not opened, but for the footer of the first table (D02) and
/// videos whose times are contradictory (D15). Immutable: any thread.
class LerobotDataset {
 public:
  /// Opens a folder with meta/info.json, or `owner/name` in a local cache: $HF_LEROBOT_HOME/owner/name (default
  /// ~/.cache/huggingface/lerobot), then the newest snapshot of datasets--owner--name in $HF_LEROBOT_HOME/hub and
  /// $HF_HOME/hub (dataset_location.h). Nothing is downloaded. An empty `probe` is probe_video.
  /// Errors: not_found (names every place that was looked at), data_loss, invalid_argument (D01).
  static Result<LerobotDataset> open(const std::string& path_or_repo_id, const VideoProbe& probe = {},
                                     DiscardedEpisodes discarded = DiscardedEpisodes::left_out);

  /// The folder, without a slash at the end.
  const std::string& root() const { return root_; }
  /// meta/info.json. References are valid while the object lives.
  const LerobotInfo& info() const { return info_; }
  /// Ascending by index; discarded episodes only where they are kept.
  const std::vector<EpisodeRecord>& episodes() const { return episodes_; }
  /// Place in episodes() of an episode index.
  std::optional<std::size_t> find(std::int64_t episode) const;
  /// task_index -> text.
  const std::map<std::int64_t, std::string>& tasks() const { return tasks_; }
  /// D02 (counts differ, files that belong to nothing, columns that features lack or call otherwise) and D15 (v3:
  /// from_timestamp drifts or ranges overlap; the text says what is used instead).
  const std::vector<DatasetProblem>& findings() const { return findings_; }

  /// Files of episodes()[place]. Errors: invalid_argument (a template that cannot be filled, a feature that is no
  /// camera, a camera that the episodes' tables do not have).
  Result<RowSource> rows(std::size_t place) const;
  Result<ImageSource> images(std::size_t place, std::string_view feature) const;
  /// The same as the metadata have it, or null: an image column, a camera without entry.
  const VideoSpan* video_span(std::size_t place, std::string_view feature) const;
  /// Names of the features that are cameras (dtype video or image), in the order of info.json.
  std::vector<std::string> cameras() const;
  /// Metadata files that exist, relative to the root, ascending: what a fingerprint covers.
  std::vector<std::string> metadata_files() const;

 private:
  void check_counts(std::size_t discarded);
  void note_foreign_files();
  std::string root_;
  LerobotInfo info_;
  std::vector<EpisodeRecord> episodes_;
  std::map<std::int64_t, std::string> tasks_;
  std::vector<DatasetProblem> findings_;
};

}  // namespace troupe::data
