#pragma once

#include <cstdint>

namespace troupe::workers {

/// What is known of one episode, while it runs or when it has ended. One record per episode: at its end, or, where
/// episodes end with the rollout (reset modes episode and fixed), once per environment at the rollout's end.
struct EpisodeMetrics {
  /// At any step so far.
  bool success_once = false;
  /// At the last step.
  bool success_at_end = false;
  bool fail_once = false;
  bool fail_at_end = false;
  /// Sum of the shaped rewards; with ChunkRules::return_until_success only up to the first success.
  double episode_return = 0;
  /// Control steps.
  std::int32_t episode_len = 0;
  /// Mean reward of a step: episode_return / episode_len, or / steps to the first success with return_until_success.
  double reward = 0;
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

}  // namespace troupe::workers
