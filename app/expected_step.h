#pragma once

#include <optional>

#include "configs/job_config.h"
#include "placement/plan.h"
#include "workers/report/step_expectation.h"

namespace troupe::app {

/// What is predicted of a plan's steps on this machine's cores, before anything computes; its rates are measured where
/// they are not known (app/product_rates.h). Nothing for a job whose steps are not predicted on cores, and where they
/// cannot be, which a line in the log explains.
std::optional<StepExpectation> expected_step(const JobConfig& job, const ModelCost& cost, const Plan& plan);

}  // namespace troupe::app
