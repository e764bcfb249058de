#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/result.h"
#include "configs/job_config.h"
#include "workers/inference/agent/agent.h"
#include "workers/learner/trainer.h"
#include "workers/rollout/moments.h"

namespace troupe::workers {

/// The weights that rollout and evaluation act with (ema.publish).
inline StateKind acting_weights(const JobConfig& job) { return job.ema.publish ? StateKind::ema : StateKind::master; }

/// Evaluation inside a run: all ranks gather the acting units, rank 0 plays the episodes of `eval` with them, 16
/// environments side by side, and all have the numbers. Rank 0 plays a batch of environments at a time and then
/// meets the others at a barrier, so that none of them waits longer than that.
class PolicyEvaluation {
 public:
  PolicyEvaluation(const JobConfig& config, const Agent& agent) : config_(config), agent_(agent) {}
  /// Metrics of workers/inference/agent/episode_runner.h and time/eval; empty unless it is due: every eval.every
  /// steps, and after the last. Episodes have the seeds eval.seed upwards. Collective. Errors: those of
  /// run_episodes, of the group.
  Result<std::map<std::string, double>> run(const TrainerSession& session, std::int64_t step,
                                            const NormaliserState& normaliser) const;

 private:
  const JobConfig& config_;
  const Agent& agent_;
};

}  // namespace troupe::workers
