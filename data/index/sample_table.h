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

namespace troupe::data {

/// A finding and the episode it came from; -1: the dataset.
struct EpisodeFinding {
  std::int64_t episode = -1;
  DatasetProblem problem;
};

/// The facts about a dataset and recipe that are not one per episode: the first section of a samples-*.idx.
struct SampleSummary {
  /// Digest of what was asked for: recipe_digest.
  std::uint64_t recipe = 0;
  /// Digest of what episode checks depended on besides the episode: check_digest.
  std::uint64_t check_key = 0;
  /// Cameras of a sample.
  std::int64_t num_views = 0;
  /// One per view: the Parquet column of its images; empty: its frames are in video files.
  std::vector<std::string> image_columns;
  /// Table rows between neighbouring anchors of a run.
  std::int64_t anchor_stride = 1;
  /// Samples of training episodes and of held-out ones.
  std::uint64_t train_size = 0, eval_size = 0;
  /// Episodes that were asked for.
  std::int64_t listed_episodes = 0;
  /// Episodes left out because of `problems`.
  std::int64_t skipped_episodes = 0;
  /// Usable episodes without one full window (D14).
  std::int64_t short_episodes = 0;
  /// What made episodes unusable, and what was coped with; in the order of episodes.
  std::vector<EpisodeFinding> problems, warnings;
  /// Of the keys of SampleColumns, over all usable episodes; empty without a training sample.
  KeyStatistics statistics;
  /// Dataset::metadata_json() and Dataset::fingerprint().
  std::string metadata_json, fingerprint;
};

/// A usable episode and where its rows and frames are; paths are places in SampleContents::paths.
struct IndexedEpisode {
  /// The frames of one view: frame `first` + k of file `path` belongs to row k.
  struct Images {
    std::uint32_t path = 0;
    std::int64_t first = 0;
  };
  Episode episode;
  /// Rows [first_row, first_row + episode.rows) of the Parquet file `data_path` are the episode's.
  std::uint32_t data_path = 0;
  std::int64_t first_row = 0;
  /// One per view, in canvas order.
  std::vector<Images> images;
};

/// Everything that a samples-*.idx holds, before it is written.
struct SampleContents {
  SampleSummary summary;
  /// The metadata files that the index was made from; an index with others is stale.
  std::vector<MetadataFile> metadata;
  /// Ascending, relative to the dataset.
  std::vector<std::string> paths;
  /// One per path: what the file was when it was indexed.
  std::vector<FileState> states;
  /// Places in `paths`: files of episodes that were left out.
  std::vector<std::uint32_t> watched;
  std::vector<IndexedEpisode> episodes;
  /// Samples of training and of held-out episodes; episode numbers are places in `episodes`.
  SampleIndex train, eval;
  /// Label -> text.
  std::map<std::int64_t, std::string> tasks;
};

/// The bytes of a samples-*.idx. docs/dataset-index.md, "samples".
std::string encode_samples(const SampleContents& contents);

/// A samples-*.idx, read in place. Its 13 sections: summary, metadata files, paths, states, watched files, episodes (72
/// bytes each), first frames per episode and view (16), label runs (16), training and held-out runs of samples (24
/// each), labels of the tasks, ends of their texts, texts.
///
/// Every offset, place and count is checked when it is opened. Immutable: any thread.
class SampleTable {
 public:
  /// Keeps `file` alive. Errors: data_loss, naming what does not fit.
  static Result<std::shared_ptr<const SampleTable>> open(std::shared_ptr<const IndexFile> file);

  /// Valid while the object lives.
  const SampleSummary& summary() const { return summary_; }
  const std::vector<MetadataFile>& metadata() const { return metadata_; }
  /// Files of the episodes, and what they were: path i, relative to the dataset, and state i. Requires i < num_paths().
  std::size_t num_paths() const { return paths_.size(); }
  std::string path(std::size_t i) const { return paths_.at(i); }
  FileState state(std::size_t i) const { return states_[i]; }
  /// As SampleContents::watched. Valid while the object lives, as all spans and views that it returns.
  std::span<const std::uint32_t> watched() const { return watched_; }

  /// Usable episodes, ascending by index.
  std::size_t num_episodes() const { return episodes_.size(); }
  /// A copy of the episode's entry. Requires place < num_episodes(), as for the following functions.
  Episode episode(std::size_t place) const;
  /// Place of an episode by its index.
  std::optional<std::size_t> find_episode(std::int64_t index) const;
  /// Paths are relative to the dataset.
  RowSource rows(std::size_t place) const;
  ImageSource images(std::size_t place, std::size_t view) const;
  /// Places of the files of an episode: its rows, then its views.
  std::vector<std::uint32_t> files_of(std::size_t place) const;

  /// Copies of the lists of samples: 24 bytes per run.
  SampleIndex train() const;
  SampleIndex eval() const;
  /// The text of a label; nothing when the dataset has no such label. Valid while the object lives.
  std::optional<std::string_view> task(std::int64_t label) const;

 private:
  struct EpisodeRow;
  struct ImageRow;
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
  std::span<const ImageRow> images_;
  std::span<const LabelRun> labels_;
  std::span<const SampleIndex::Run> train_, eval_;
  std::span<const std::int64_t> task_labels_;
  std::span<const std::uint64_t> task_ends_;
  std::span<const std::byte> task_texts_;
};

}  // namespace troupe::data
