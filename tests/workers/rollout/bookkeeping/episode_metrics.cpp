#include "tests/workers/rollout/bookkeeping/episode_metrics.h"

namespace troupe::workers {

void EpisodeTotals::add(const EpisodeMetrics& episode) {
  ++num_trajectories;
  success_once += episode.success_once ? 1 : 0;
  success_at_end += episode.success_at_end ? 1 : 0;
  fail_once += episode.fail_once ? 1 : 0;
  episode_len += episode.episode_len;
  episode_return += episode.episode_return;
  reward += episode.reward;
}

void EpisodeTotals::add(const EpisodeTotals& others) {
  num_trajectories += others.num_trajectories;
  success_once += others.success_once;
  success_at_end += others.success_at_end;
  fail_once += others.fail_once;
  episode_len += others.episode_len;
  episode_return += others.episode_return;
  reward += others.reward;
}

}  // namespace troupe::workers
