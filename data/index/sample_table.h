#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "data/index/file_table.h"
#include "data/index/index_file.h"
#include "data/index/metadata_state.h"
#include "data/index/path_table.h"
#include "data/lerobot/dataset_problem.h"
#include "data/lerobot/episode_check.h"
#include "data/lerobot/lerobot_dataset.h"
#include "data/sampling/sample_index.h"
#include "data/statistics/state_action.h"

namespace troupe {

/// A finding and the episode it came from; -1: the dataset.
struct EpisodeFinding {
  std::int64_t episode = -1;
  DatasetProblem problem;
};

/// The facts about a dataset and recipe that are not one per episode.
struct SampleSummary {
  std::uint64_t recipe = 0;     ///< digest of what was asked for: recipe_digest
  std::uint64_t check_key = 0;  ///< digest of what episode checks depended on besides the episode: check_digest
  std::int64_t num_views = 0;
  std::vector<std::string> image_columns;  ///< one a view; empty: its pictures are videos
  std::int64_t anchor_stride = 1;
  std::uint64_t train_size = 0, eval_size = 0;
  std::int64_t listed_episodes = 0;   ///< that were asked for
  std::int64_t skipped_episodes = 0;  ///< left out because of `problems`
  std::int64_t short_episodes = 0;    ///< usable, without one full window
  std::vector<EpisodeFinding> problems, warnings;
  KeyStatistics statistics;
  std::string metadata_json, fingerprint;
};

/// A usable episode and where its rows and pictures are; paths are places in SampleContents::paths.
struct IndexedEpisode {
  struct Pictures {
    std::uint32_t path = 0;
    std::int64_t first = 0;
  };
  Episode episode;
  std::uint32_t data_path = 0;
  std::int64_t first_row = 0;
  std::vector<Pictures> pictures;  ///< one a view
};

/// Everything that a samples-*.idx holds, before it is written.
struct SampleContents {
  SampleSummary summary;
  std::vector<MetadataFile> metadata;
  std::vector<std::string> paths;      ///< ascending, relative to the dataset
  std::vector<FileState> states;       ///< one a path
  std::vector<std::uint32_t> watched;  ///< places in `paths`: files of episodes that were left out
  std::vector<IndexedEpisode> episodes;
  SampleIndex train, eval;
  std::map<std::int64_t, std::string> tasks;
};

/// The bytes of a samples-*.idx. docs/dataset-index.md, "samples".
std::string encode_samples(const SampleContents& contents);

/// A samples-*.idx, read in place. Every offset, place and count is checked when it is opened. Immutable: any thread.
class SampleTable {
 public:
  /// Errors: data_loss.
  static Result<std::shared_ptr<const SampleTable>> open(std::shared_ptr<const IndexFile> file);

  const SampleSummary& summary() const { return summary_; }
  const std::vector<MetadataFile>& metadata() const { return metadata_; }
  std::size_t num_paths() const { return paths_.size(); }
  std::string path(std::size_t i) const { return paths_.at(i); }
  std::optional<std::size_t> find_path(std::string_view path) const { return paths_.find(path); }
  FileState state(std::size_t i) const { return states_[i]; }
  std::span<const std::uint32_t> watched() const { return watched_; }

  std::size_t num_episodes() const { return episodes_.size(); }
  Episode episode(std::size_t place) const;
  /// Place of an episode by its index.
  std::optional<std::size_t> find_episode(std::int64_t index) const;
  /// Paths are relative to the dataset.
  RowSource rows(std::size_t place) const;
  PictureSource pictures(std::size_t place, std::size_t view) const;
  /// Places of the files of an episode: its rows, then its views.
  std::vector<std::uint32_t> files_of(std::size_t place) const;

  SampleIndex train() const;
  SampleIndex eval() const;
  /// Null when the dataset has no such label.
  std::optional<std::string_view> task(std::int64_t label) const;

 private:
  struct EpisodeRow;
  struct PictureRow;
  SampleTable() = default;
  friend std::string encode_samples(const SampleContents& contents);
  Result<void> read_arrays();
  Result<void> read_tasks();
  Result<void> check_episodes() const;
  Result<void> check_runs(std::span<const SampleIndex::Run> runs, std::uint64_t size) const;

  std::shared_ptr<const IndexFile> file_;
  SampleSummary summary_;
  std::vector<MetadataFile> metadata_;
  PathTable paths_;
  std::span<const FileState> states_;
  std::span<const std::uint32_t> watched_;
  std::span<const EpisodeRow> episodes_;
  std::span<const PictureRow> pictures_;
  std::span<const LabelRun> labels_;
  std::span<const SampleIndex::Run> train_, eval_;
  std::span<const std::int64_t> task_labels_;
  std::span<const std::uint64_t> task_ends_;
  std::span<const std::byte> task_texts_;
};

}  // namespace troupe
