#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "configs/job_config.h"
#include "placement/rl_shape.h"
#include "workers/learner/trainer.h"
#include "workers/rollout/collected_item.h"
#include "workers/rollout/trajectory_layout.h"
#include "workers/stream/feed.h"

namespace troupe {

/// Takes rounds of trajectory items from a rank's feed, and says how far rollout workers may be ahead (rl.md 12.2): version v of the
/// weights is used by rounds [v * rounds_per_version, ...), and with staleness S rounds of version v + S may be collected while v is
/// the newest. Used by the rank's thread.
class RoundCollector {
 public:
  struct Options {
    RlShape shape;
    std::int64_t staleness = 0;
    bool exact = true;  ///< rollouts wait for exactly the version their round names
    std::int64_t rounds_per_version = 1;
    std::int64_t total_rounds = 1;  ///< of the whole job
  };
  RoundCollector(Options options, TrajectoryLayout layout, Feed& feed);

  /// A group begins at `version` with nothing collected. `world` ranks share the blocks.
  void begin(const TrainerSession& session, std::int64_t version);
  /// `version` is published: rounds that were waiting for it may be collected.
  void allow(std::int64_t version);

  /// This rank's items of a round, in order of position. They stay valid until the next call. Adds the time spent waiting to
  /// `stall_seconds`. Errors: those of Feed::take; failed_precondition for an item that could not be made, with its reason.
  Result<std::vector<CollectedItem>> take(std::int64_t round, double& stall_seconds);

  const TrajectoryLayout& layout() const { return layout_; }
  const RlShape& shape() const { return options_.shape; }

 private:
  const Options options_;
  const TrajectoryLayout layout_;
  Feed& feed_;
  std::int64_t items_per_rank_ = 1;
  std::int64_t first_version_ = 0;
  std::int64_t allowed_versions_ = 0;  ///< versions below this were allowed
  std::chrono::milliseconds timeout_{0};
};

}  // namespace troupe
