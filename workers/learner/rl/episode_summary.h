#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>

#include "base/result.h"
#include "comm/collective/collective.h"
#include "workers/learner/rl/round_collector.h"

namespace troupe::workers {

/// What the episodes that ended in some items came to, over all ranks: of environments, not of agents. Every record
/// counts the same: sums of records over sums of counts, never a mean of ranks' means. One thread.
class EpisodeSummary {
 public:
  /// Counts every record of the items, and their executed and lost steps.
  void add(const TrajectoryLayout& layout, std::span<const CollectedItem> items);
  /// Sums over ranks; once, after the last add(). Collective.
  Result<void> reduce(Collective& group);
  /// env/num_trajectories, return, episode_len, reward (return / length), success_once, success_at_end (with
  /// `has_success`), env/lost_rows, env/given_up. Means are absent where no episode ended.
  std::map<std::string, double> metrics(bool has_success) const;

  /// Actions executed.
  std::int64_t env_steps() const { return static_cast<std::int64_t>(sums_[kEnvSteps]); }
  /// Transitions given up with a simulator: they were produced and never reached a feed.
  std::int64_t given_up() const { return static_cast<std::int64_t>(sums_[kGivenUp]); }
  /// Transitions that will never be trained: given_up(), and steps at which an environment failed.
  std::int64_t lost() const { return static_cast<std::int64_t>(sums_[kLostEnvs] + sums_[kGivenUp]); }

 private:
  enum : std::size_t {
    kEpisodes,
    kReturn,
    kLength,
    kReward,
    kSuccessOnce,
    kSuccessAtEnd,
    kEnvSteps,
    kLostEnvs,
    kGivenUp,
    kCount
  };
  double sums_[kCount] = {};
};

}  // namespace troupe::workers
