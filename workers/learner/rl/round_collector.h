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

namespace troupe::workers {

/// Takes rounds of trajectory items from a rank's feed, and says how far rollout workers may be ahead: version v of
/// the weights is used by rounds [v * rounds_per_version, (v + 1) * rounds_per_version), and with staleness S the
/// rounds up to those of version v + S may be collected while v is the newest. A round of version w asks for version
/// max(first, w - S): that one exactly, or with `exact` false that or a newer one. Used by the rank's thread.
class RoundCollector {
 public:
  struct Options {
    RlShape shape;
    /// S, in versions; rollout.staleness.
    std::int64_t staleness = 0;
    /// Rollouts wait for exactly the version their round names.
    bool exact = true;
    std::int64_t rounds_per_version = 1;
    /// Of the whole job.
    std::int64_t total_rounds = 1;
    /// Feed::Options::item_deadline. take() waits for an item that stands still for so long and the session's step
    /// timeout: until its rollout worker is found to be stuck, and then for another one.
    std::chrono::milliseconds item_deadline{0};
  };
  /// The feed must outlive the collector.
  RoundCollector(Options options, TrajectoryLayout layout, Feed& feed);

  /// A group begins at `version` with nothing collected. `world` ranks share the blocks.
  void begin(const TrainerSession& session, std::int64_t version);
  /// `version` is published: rounds that were waiting for it may be collected.
  void allow(std::int64_t version);

  /// This rank's items of a round, in order of position, copied: the feed's slots are free again. Adds the time
  /// spent waiting to `stall_seconds`. Errors: those of Feed::take; failed_precondition for an item that could not
  /// be made, with its reason; data_loss for one that is not of the layout.
  Result<std::vector<CollectedItem>> take(std::int64_t round, double& stall_seconds);

  const TrajectoryLayout& layout() const { return layout_; }
  const RlShape& shape() const { return options_.shape; }

 private:
  const Options options_;
  const TrajectoryLayout layout_;
  Feed& feed_;
  std::int64_t items_per_rank_ = 1;
  std::int64_t first_version_ = 0;
  /// Versions below this were allowed.
  std::int64_t allowed_versions_ = 0;
  std::chrono::milliseconds timeout_{0};
};

}  // namespace troupe::workers
