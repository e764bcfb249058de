#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "configs/job_config.h"
#include "model/cores/core_rates.h"
#include "model/step/step_timing.h"
#include "placement/plan.h"
#include "workers/pipeline/planned_step.h"

namespace troupe::workers {

/// How fast a plan's learners on cores would be by this machine's measured rates (docs/learner-engine.md#prediction).
struct CorePrediction {
  PlannedStep step = {};
  StepTiming timing = {};
  int ranks = 1, threads = 1;
  /// of all ranks
  double samples_per_second = 0;
  /// floating-point operations of products of a step of all ranks, attention's and those that run again included
  double product_flops = 0;
  /// measured: a large product in the job's form on all cores, FLOP/s
  double product_rate = 0;

  /// 0..1: of the measured rate, when a step takes so long.
  double product_share(double seconds) const { return product_flops / seconds / product_rate; }
};

/// Whether a job's step can be predicted on cores at all: it is supervised, trains the transformer, and its learners
/// are planned on cores.
bool steps_on_cores(const JobConfig& job, const ModelCost& cost, const Plan& plan);

/// `rates`: of the machine that the learners are planned on; nothing: not measured. `job` is steps_on_cores. Records
/// blocks in the plan's form of products, so nothing may multiply meanwhile. Errors: failed_precondition (why nothing
/// can be said: no rates, or none for what is planned), those of planned_step.
Result<CorePrediction> predict_on_cores(const JobConfig& job, const ModelCost& cost, const Plan& plan,
                                        const std::optional<CoreRates>& rates);

/// Lines for a plan's table, each of which says that it is predicted.
std::string to_text(const CorePrediction& prediction);

}  // namespace troupe::workers
