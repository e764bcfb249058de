#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "configs/data_config.h"
#include "configs/model_config.h"
#include "data/index/dataset_index.h"
#include "data/lerobot/episode_check.h"
#include "data/lerobot/lerobot_dataset.h"
#include "data/sampling/dataset_spec.h"
#include "data/sampling/sample_index.h"
#include "data/statistics/dataset_statistics.h"
#include "data/statistics/state_action.h"

namespace troupe::data {

/// One LeRobot dataset for one embodiment, checked: which episodes are usable, where their files are, their
/// statistics, and every sample that can be drawn from them. All of it comes from the dataset's index, which the
/// first opening makes. The same files and configuration give the same object everywhere, with an index or without.
/// Immutable: any thread.
class Dataset {
 public:
  /// Opens a dataset through its index (dataset_index.h); what has to be checked is checked (docs/data.md#defects
  /// lists the codes).
  ///
  /// With spec.bad_sample `fail`, any bad file is an error that lists all of them, one per line; with `skip` their
  /// episodes are left out and listed in problems(). Wrong counts in info.json and other harmless findings are only in
  /// warnings(). Errors: invalid_argument (configuration or metadata: D01; an episode that is named and does not
  /// exist; a rate other than the embodiment's), not_found, data_loss (bad files), failed_precondition (no sample
  /// left).
  static Result<std::shared_ptr<const Dataset>> open(const DatasetSpec& spec, const DatasetOptions& options = {});
  /// The same for a configuration of one dataset: data.sets[0]. Mixture::open takes several.
  static Result<std::shared_ptr<const Dataset>> open(const DataConfig& data, const ModelConfig& model,
                                                     const DatasetOptions& options = {});
  ~Dataset();

  const DatasetSpec& spec() const { return spec_; }
  /// The dataset's folder: spec().path, or where that repo id was found.
  const std::string& root() const { return root_; }
  const LerobotInfo& info() const { return info_; }
  /// Which columns make a sample; views in canvas order.
  const SampleColumns& columns() const { return columns_; }
  /// Usable episodes in ascending order of index.
  const std::vector<Episode>& episodes() const { return episodes_; }
  /// Reasons why episodes were left out (bad_sample: skip).
  const std::vector<DatasetProblem>& problems() const { return problems_; }
  /// Episodes left out because of problems().
  std::int64_t skipped_episodes() const { return index_.samples->summary().skipped_episodes; }
  const std::vector<DatasetProblem>& warnings() const { return warnings_; }

  /// Every sample of the training episodes; size() is N of the sampler.
  const SampleIndex& train() const { return train_; }
  /// Every full window of the held-out episodes.
  const SampleIndex& eval() const { return eval_; }
  /// Windows evaluated when at most `max_samples` are wanted.
  std::uint64_t eval_size(std::int64_t max_samples) const;
  /// Evaluation window i of eval_size(max_samples), spread evenly over eval(). Requires i < eval_size(max_samples).
  SampleEntry eval_entry(std::uint64_t i, std::int64_t max_samples) const;

  /// The label and vector columns of the rows of episodes()[place], whatever else their file holds. A file that is not
  /// the one that was indexed is a D16: logged once, counted, and read as it is now.
  /// Errors: as read_parquet; a file with fewer rows than were indexed is one of them.
  Result<EpisodeTable> read_table(std::size_t place) const;
  /// Where the frames of view `view` of episodes()[place] are. Requires both to exist.
  Result<ImageSource> images(std::size_t place, std::size_t view) const;
  /// The packet table of a video file of this dataset; null without that file in the index, and when `identity` has
  /// another size or time than what was indexed (D16, as above). Thread-safe; tables may outlive the dataset.
  std::shared_ptr<const PacketTable> packet_table(const std::string& path, const FileIdentity& identity) const;
  /// Files that were found to be replaced (D16) since this object was opened.
  std::int64_t replaced_files() const;
  /// The text of a label; empty when the dataset has no language.
  std::string task_text(std::int64_t label) const;

  const KeyStatistics& statistics() const { return index_.samples->summary().statistics; }
  /// GEAR's experiment metadata as JSON (experiment_metadata), saved beside every checkpoint.
  const std::string& metadata_json() const { return index_.samples->summary().metadata_json; }
  /// 32 hex digits over the metadata files, names and sizes of every episode's files, the usable episodes, and the
  /// window, sampling and split that number the samples. Equal fingerprints mean that position q is the same sample.
  const std::string& fingerprint() const { return index_.samples->summary().fingerprint; }
  /// Whether the index was loaded or made, and what that took.
  const IndexReport& index_report() const { return index_.report; }
  /// What the index knows of the dataset's files.
  const FileTable& files() const { return *index_.files; }

 private:
  struct Shared;
  Dataset();
  Result<void> read_columns();
  Result<void> check_columns() const;
  Result<void> take_index();
  void note_replaced(const std::string& path) const;

  DatasetSpec spec_;
  std::string root_;
  LerobotInfo info_;
  SampleColumns columns_;
  OpenedIndex index_;
  std::vector<Episode> episodes_;
  std::vector<DatasetProblem> problems_, warnings_;
  SampleIndex train_, eval_;
  std::unique_ptr<Shared> shared_;  ///< what threads share: open tables, replaced files
};

}  // namespace troupe::data
