#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "configs/data_config.h"
#include "configs/model_config.h"
#include "workers/data/dataset_statistics.h"
#include "workers/data/episode_check.h"
#include "workers/data/sampling/sample_index.h"
#include "workers/data/state_action.h"

namespace troupe {

/// How a dataset is opened.
struct DatasetOptions {
  VideoProbe probe;          ///< empty: probe_video
  std::int64_t threads = 0;  ///< that check files; 0: one per CPU, at most 16
};

/// One LeRobot v2.0 or v2.1 dataset, checked: which episodes are usable, where their files are, their statistics, and
/// every sample that can be drawn from them. The same files and configuration give the same object everywhere.
/// Immutable: any thread.
class Dataset {
 public:
  /// Reads the metadata and checks every episode's files (data.md 6.3; docs/data.md lists the codes).
  ///
  /// With data.bad_sample `fail`, any bad file is an error that lists all of them, one per line; with `skip` their
  /// episodes are left out and listed in problems(). Wrong counts in info.json and other harmless findings are only in
  /// warnings(). Errors: invalid_argument (configuration or metadata: D01), not_found, data_loss (bad files),
  /// failed_precondition (no sample left).
  static Result<std::shared_ptr<const Dataset>> open(const DataConfig& data, const ModelConfig& model,
                                                     const DatasetOptions& options = {});

  const std::string& root() const { return source_.root; }
  const LerobotInfo& info() const { return source_.info; }
  /// Which columns make a sample; views in canvas order.
  const SampleColumns& columns() const { return source_.columns; }
  /// Usable episodes in ascending order of index.
  const std::vector<Episode>& episodes() const { return episodes_; }
  /// Reasons why episodes were left out (bad_sample: skip).
  const std::vector<DatasetProblem>& problems() const { return problems_; }
  /// Episodes left out because of problems().
  std::int64_t skipped_episodes() const { return skipped_episodes_; }
  const std::vector<DatasetProblem>& warnings() const { return warnings_; }

  /// Every sample of the training episodes; size() is N of the sampler.
  const SampleIndex& train() const { return train_; }
  /// Every full window of data.eval_episodes.
  const SampleIndex& eval() const { return eval_; }
  /// Windows evaluated when at most `max_samples` are wanted.
  std::uint64_t eval_size(std::int64_t max_samples) const;
  /// Evaluation window i of eval_size(max_samples), spread evenly over eval(). Requires i < eval_size(max_samples).
  SampleEntry eval_entry(std::uint64_t i, std::int64_t max_samples) const;

  /// The label and vector columns of episodes()[place]. Errors: as read_parquet.
  Result<EpisodeTable> read_table(std::size_t place) const;
  /// The file of view `view` of episodes()[place].
  Result<std::string> video_path(std::size_t place, std::size_t view) const;
  /// The text of a label; empty when the dataset has no language.
  std::string task_text(std::int64_t label) const;

  const KeyStatistics& statistics() const { return statistics_; }
  /// GEAR's experiment metadata as JSON (data.md 2.4), saved beside every checkpoint.
  const std::string& metadata_json() const { return metadata_json_; }
  /// 32 hex digits over the metadata files, names and sizes of every episode's files, the usable episodes, and the
  /// window and split that number the samples. Equal fingerprints mean that position q is the same sample.
  const std::string& fingerprint() const { return fingerprint_; }

 private:
  Dataset() = default;
  Result<void> load_source(const DataConfig& data, const ModelConfig& model, const DatasetOptions& options);
  Result<void> check_files(const DataConfig& data, const DatasetOptions& options);
  void check_counts(std::size_t listed);
  Result<void> index_samples(const DataConfig& data);
  Result<void> load_statistics_of(const DataConfig& data);
  Result<void> compute_fingerprint(const DataConfig& data);

  EpisodeSource source_;
  std::vector<EpisodeRecord> records_;
  std::vector<Episode> episodes_;
  std::vector<DatasetProblem> problems_, warnings_;
  std::int64_t skipped_episodes_ = 0;
  SampleIndex train_, eval_;
  KeyStatistics statistics_;
  std::string metadata_json_, fingerprint_;
};

}  // namespace troupe
