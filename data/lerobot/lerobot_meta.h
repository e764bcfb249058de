#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "data/lerobot/dataset_problem.h"
#include "data/lerobot/lerobot_info.h"

namespace troupe::data {

/// Rows that an episode may claim: sums over a dataset stay far from overflow.
inline constexpr std::int64_t kMostEpisodeRows = std::int64_t{1} << 40;

/// Where the frames of one camera of dtype video lie for one episode.
struct VideoSpan {
  /// Place in LerobotInfo::features.
  std::int32_t feature = 0;
  /// v2: the episode's chunk; v3: videos/KEY/chunk_index.
  std::int64_t chunk = 0;
  /// v2: the episode's index; v3: videos/KEY/file_index.
  std::int64_t file = 0;
  /// Presentation index of row 0's frame in that file.
  std::int64_t first_frame = 0;
  /// Frames from there to the next episode of the file; -1: to the file's end.
  std::int64_t frames = -1;
  /// v3: seconds in that file, as the metadata say.
  double from_timestamp = 0;
  /// v3: where the episode ends; frames are counted, so neither time is used to find a frame.
  double to_timestamp = 0;
};

/// One episode of the metadata: meta/episodes.jsonl of v2, meta/episodes/**.parquet of v3.
struct EpisodeRecord {
  /// episode_index.
  std::int64_t index = 0;
  /// Table rows.
  std::int64_t length = 0;
  /// Texts of its tasks.
  std::vector<std::string> tasks{};
  /// v2: the episode's chunk and index; v3: data/chunk_index, file_index.
  std::int64_t data_chunk = 0, data_file = 0;
  /// Table row of its data file where it begins.
  std::int64_t first_row = 0;
  /// Column `index` of its first row; v2: the lengths before it.
  std::int64_t dataset_from = 0;
  /// One per camera of dtype video, in the order of info.json.
  std::vector<VideoSpan> videos{};
};

/// Frames of a video file, or -1 when that cannot be told.
using CountFrames = std::function<std::int64_t(const std::string& path)>;

/// All episodes, ascending by index, discarded ones included. D15 findings (v3: times that disagree with the lengths
/// before them, ranges that overlap) are appended to `findings`, one a file; `count` is asked about those files alone
/// (empty: the lengths are used). Of v3's tables only the columns that are needed are read.
/// Errors: not_found, data_loss; invalid_argument (not JSON or no such column, an episode listed twice, a negative
/// number, a template by which two files of them are one), naming file and line or column.
Result<std::vector<EpisodeRecord>> read_episodes(const std::string& root, const LerobotInfo& info,
                                                 std::vector<DatasetProblem>& findings, const CountFrames& count);
/// The same without findings, from the metadata alone.
Result<std::vector<EpisodeRecord>> read_episodes(const std::string& root, const LerobotInfo& info);

/// meta/tasks.jsonl or meta/tasks.parquet: task_index -> text. Errors: as above.
Result<std::map<std::int64_t, std::string>> read_tasks(const std::string& root, const LerobotInfo& info);

/// Puts one task into the map. Errors: invalid_argument when its index has another text already.
Result<void> add_task(std::map<std::int64_t, std::string>& tasks, std::int64_t index, std::string text);

/// Rows that meta/step_filter.jsonl removes from sampling, as (episode, row); empty without that file. Errors: as
/// above.
Result<std::set<std::pair<std::int64_t, std::int64_t>>> read_step_filter(const std::string& root);

}  // namespace troupe::data
