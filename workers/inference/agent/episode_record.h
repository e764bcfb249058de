#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "env/episode_seed.h"

namespace troupe::workers {

/// One evaluation episode (docs/evaluation.md#playing-episodes).
struct EvaluationEpisode {
  /// The episode began with evaluation_seed(seed).
  std::int64_t seed = 0;
  double total_return = 0;
  /// Control steps.
  std::int64_t length = 0;
  bool success_once = false, success_at_end = false;
  /// Why the episode was given up: the environment failed, and again when it was repeated. Empty: it was played. What
  /// was lost has no return, length or success and counts in no mean.
  std::string lost = {};
  /// Every action as it was given to the environment, `length` times ActionSpace::size numbers, row by row: with the
  /// seed they give the episode again, bit for bit. Empty but for episodes that EpisodeOptions::keep_actions keeps.
  std::vector<float> actions = {};
};

/// The episode seed (env/env.h) of an evaluation episode's seed.
inline std::uint64_t evaluation_seed(std::int64_t seed) { return episode_seed(static_cast<std::uint64_t>(seed), 0, 0); }

/// eval/lost, and of the episodes that were played: eval/num_trajectories, return, return_std (population),
/// return_min, return_max, episode_len, reward (return / length, averaged), and with EnvSpec::has_success success_once,
/// success_at_end. Where none was played: the two counts alone.
std::map<std::string, double> evaluation_metrics(const std::vector<EvaluationEpisode>& records, bool has_success);

}  // namespace troupe::workers
