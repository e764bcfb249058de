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

/// A LeRobot dataset of data.sets (v2.0, v2.1, v3.0) whose rows are observations and actions of the job's policy:
/// kStateColumn [D] and kActionColumn [A]. Cameras are not read.
class RecordedSet {
 public:
  struct Episode {
    /// In LerobotDataset::episodes().
    std::size_t place = 0;
    bool is_held_out = false;
  };

  /// Every dataset of data.sets. Errors: those of LerobotDataset::open; invalid_argument (a policy that sees more than
  /// recordings hold, a column that is missing or of another width than the policy's, an episode that is named and
  /// does not exist, a recording of `troupe record` with another time limit than the policy's episodes);
  /// failed_precondition (no episode left to train on). Each names the dataset and what to change.
  static Result<std::vector<RecordedSet>> open_all(const DataConfig& data, const PolicyShape& shape);

  const std::string& root() const { return dataset_.root(); }
  /// What its `episodes` and `eval_episodes` leave, in order of index.
  const std::vector<Episode>& episodes() const { return episodes_; }
  std::int64_t length(const Episode& episode) const { return dataset_.episodes()[episode.place].length; }
  /// Both columns of an episode, and those of `more`. Errors: those of read_parquet; invalid_argument (rows of another
  /// width than meta/info.json says).
  Result<EpisodeTable> read(const Episode& episode, TableColumns more = {}) const;

 private:
  RecordedSet(LerobotDataset dataset, const PolicyShape& shape)
      : dataset_(std::move(dataset)), state_dim_(shape.state_dim), action_dim_(shape.action_dim) {}
  static Result<RecordedSet> open(const DataConfig& data, std::size_t set, const PolicyShape& shape);
  /// Fills episodes_.
  Result<void> choose(const DataConfig& data, const DataSetConfig& entry);

  LerobotDataset dataset_;
  std::int64_t state_dim_, action_dim_;
  std::vector<Episode> episodes_;
};

}  // namespace troupe::workers
