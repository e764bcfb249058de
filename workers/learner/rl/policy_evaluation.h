#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/result.h"
#include "configs/job_config.h"
#include "workers/inference/agent/agent.h"
#include "workers/learner/trainer.h"
#include "workers/rollout/moments.h"

namespace troupe {

/// Evaluation inside a run: all ranks gather the acting units, rank 0 plays the episodes of `eval` with them, and all have the numbers.
class PolicyEvaluation {
 public:
  PolicyEvaluation(const JobConfig& config, const Agent& agent) : config_(config), agent_(agent) {}
  /// workers/inference/agent/episode_runner.h's metrics and time/eval. Only where `due`: every eval.every steps, and after the last. Collective.
  Result<std::map<std::string, double>> run(const TrainerSession& session, std::int64_t step,
                                            const NormaliserState& normaliser) const;

 private:
  const JobConfig& config_;
  const Agent& agent_;
};

}  // namespace troupe
