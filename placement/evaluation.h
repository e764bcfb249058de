#pragma once

#include <cstdint>

#include "configs/job_config.h"
#include "placement/rl_shape.h"

namespace troupe::placement {

/// Whether the weights behind `step` committed steps are evaluated: every eval.every steps, and after the last.
inline bool is_evaluated(const JobConfig& job, std::int64_t step) {
  return step == job.training.steps || (step > 0 && job.eval.every > 0 && step % job.eval.every == 0);
}

/// Versions of the weights that one step publishes: on-policy one, off-policy one a round.
inline std::int64_t versions_per_step(const JobConfig& job) {
  return is_off_policy(job) ? rl_shape(job).rounds_per_step : 1;
}

/// Most episodes that one evaluation plays side by side.
inline constexpr std::int64_t kParallelEpisodes = 16;

/// Evaluator processes that play one evaluation before the rest of it is lost
/// (docs/evaluation.md#evaluations-of-a-run).
inline constexpr std::int64_t kMostEvaluationStarts = 6;

}  // namespace troupe::placement
