#pragma once

// Internal to data/convert: what `troupe stats` would say of a source.
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "data/convert/dataset_source.h"
#include "data/health/camera_facts.h"
#include "data/health/episode_stats_check.h"
#include "data/lerobot/episode_check.h"
#include "data/lerobot/modality.h"

namespace troupe::data {

/// Examines one source as `troupe stats` does, with every camera as a view and every column of numbers read. Copies
/// share what they have read.
class SourceCheck {
 public:
  /// `source` was opened with its metadata (DatasetSource::files). `merged`: task indices get other numbers, so that
  /// one without a text is a problem in whatever column it stands. Errors: data_loss (a meta/modality.json that cannot
  /// be used).
  static Result<SourceCheck> make(const DatasetSource& source, bool merged);

  /// Everything check_episode finds. Warnings: besides its own, what keeps an episode from training but not from being
  /// carried (views of several sizes, frames of another format than training takes), and columns that no sample uses.
  /// Thread-safe.
  EpisodeCheck check(const SourceEpisode& episode) const;

  /// D02: names of modality.json that info.json lacks, and what info.json says of cameras and their files contradict.
  /// D12: statistics of episodes of other data. `checks` are those of all episodes.
  std::vector<DatasetProblem> compare_metadata(const std::vector<const EpisodeCheck*>& checks) const;

  /// D12: what meta/stats.json says and the tables of these episodes, which are all of the dataset, contradict.
  /// Errors: data_loss (a table that was readable before is not any more).
  Result<std::vector<DatasetProblem>> compare_statistics(std::span<const Episode> episodes, std::int64_t threads) const;

 private:
  void settle_views(const SourceEpisode& episode, EpisodeCheck& check) const;
  void check_other_columns(const SourceEpisode& episode, EpisodeCheck& check) const;
  void check_labels(const std::string& path, const std::string& column, const EpisodeTable& table,
                    EpisodeCheck& check) const;

  bool merged_ = false;
  Modality modality_;
  std::shared_ptr<ProbedVideos> videos_;
  EpisodeSource source_;
  std::shared_ptr<EpisodeStatsCheck> episode_stats_;
  /// Columns that no sample uses: numbers, and task indices.
  std::vector<std::string> numbers_, labels_;
};

}  // namespace troupe::data
