#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "configs/job_config.h"
#include "model/step/op.h"
#include "placement/plan.h"

namespace troupe::workers {

/// One optimizer step of a learner's rank as the engine runs it: all micro-batches, the vote and the update.
struct PlannedStep {
  std::shared_ptr<const ArenaPlan> plan;
  std::vector<Op> operations;
};

/// The step of a job that fine-tunes DreamZero, from empty slots; all ranks have the same. Errors: failed_precondition
/// (a job that trains a policy).
Result<PlannedStep> planned_step(const JobConfig& job, const ModelCost& cost, const Plan& plan);

/// "one step of a rank of 2: 94 operations, 61 waits between streams, no hazard", the operations, one a line, and
/// hazards, if there are any.
std::string to_text(const PlannedStep& step);

}  // namespace troupe::workers
