#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "configs/data_config.h"
#include "data/lerobot/lerobot_dataset.h"
#include "data/lerobot/parquet_table.h"
#include "model/policy/policy_shape.h"

namespace troupe::workers {

/// Columns of a recorded row: the observation before the action, and the action in the environment's units.
inline constexpr const char* kStateColumn = "observation.state";
inline constexpr const char* kActionColumn = "action";
/// What a row's instruction is: the index of one of meta/tasks.
inline constexpr const char* kTaskColumn = "task_index";

/// A LeRobot dataset of data.sets (v2.0, v2.1, v3.0) whose rows are observations and actions of the job's policy:
/// kStateColumn, whose first D numbers are what its actor reads and behind which may stand what critics alone read, and
/// kActionColumn [A]. The pictures of "rgb.front" are the frames of `observation.images.front`. A policy that is told a
/// text (PolicyShape::texts) is told the row's task.
class RecordedSet {
 public:
  struct Episode {
    /// In LerobotDataset::episodes().
    std::size_t place = 0;
    bool is_held_out = false;
  };

  /// Every dataset of data.sets, for a policy that looks at `images`. Errors: those of LerobotDataset::open;
  /// invalid_argument (a policy that sees more or is told more than recordings hold, a column or camera that is
  /// missing, or of another width than the policy's, a depth camera, a task longer than the policy's text, an episode
  /// that is named and does not exist, a recording of `troupe record` with another time limit than the policy's
  /// episodes); failed_precondition (no episode left to train on). Each names the dataset and what to change.
  static Result<std::vector<RecordedSet>> open_all(const DataConfig& data, const PolicyShape& shape,
                                                   const std::vector<PolicyShape::Image>& images = {});

  const std::string& root() const { return dataset_.root(); }
  /// What its `episodes` and `eval_episodes` leave, in order of index.
  const std::vector<Episode>& episodes() const { return episodes_; }
  std::int64_t length(const Episode& episode) const { return dataset_.episodes()[episode.place].length; }
  /// Both columns of an episode, and those of `more`; kTaskColumn too where the policy is told a text. Errors: those of
  /// read_parquet; invalid_argument (rows of another width than meta/info.json says).
  Result<EpisodeTable> read(const Episode& episode, TableColumns more = {}) const;
  /// A task as the policy is told it, as many bytes as its text has room for, zeros behind it. Only where it is told
  /// one. Errors: invalid_argument (a number that meta/tasks does not have).
  Result<std::string> told(std::int64_t task) const;
  /// Where the pictures of an episode are. Errors: those of LerobotDataset::images.
  Result<ImageSource> frames(const Episode& episode, const PolicyShape::Image& image) const;

 private:
  RecordedSet(LerobotDataset dataset, std::int64_t text_bytes)
      : dataset_(std::move(dataset)), text_bytes_(text_bytes) {}
  static Result<RecordedSet> open(const DataConfig& data, std::size_t set, const PolicyShape& shape,
                                  const std::vector<PolicyShape::Image>& images);
  /// Fills episodes_.
  Result<void> choose(const DataConfig& data, const DataSetConfig& entry);

  LerobotDataset dataset_;
  /// Room of the text that the policy is told; 0: none.
  std::int64_t text_bytes_ = 0;
  std::vector<Episode> episodes_;
};

}  // namespace troupe::workers
