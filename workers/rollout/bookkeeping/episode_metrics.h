#pragma once

#include <cstdint>

namespace troupe {

/// What is known of one episode, while it runs or when it has ended (rl.md 1.7).
struct EpisodeMetrics {
  bool success_once = false;    ///< at any step so far
  bool success_at_end = false;  ///< at the last step
  bool fail_once = false;
  bool fail_at_end = false;
  double episode_return = 0;     ///< sum of the rewards that count
  std::int32_t episode_len = 0;  ///< control steps
  double reward = 0;             ///< mean reward of a step
};

/// Means over episodes, every one with the same weight whoever reports it: add the totals of several workers.
struct EpisodeTotals {
  std::int64_t num_trajectories = 0;
  std::int64_t success_once = 0, success_at_end = 0, fail_once = 0;
  std::int64_t episode_len = 0;
  double episode_return = 0, reward = 0;

  void add(const EpisodeMetrics& episode);
  void add(const EpisodeTotals& others);
  /// total / num_trajectories; 0 without episodes.
  double mean(double total) const { return num_trajectories > 0 ? total / static_cast<double>(num_trajectories) : 0; }
};

}  // namespace troupe
