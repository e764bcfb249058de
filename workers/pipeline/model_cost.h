#pragma once

#include "base/result.h"
#include "configs/job_config.h"
#include "env/env_spec.h"
#include "placement/plan.h"

namespace troupe::workers {

/// Sizes in bytes and FLOPs for the planner, from the very unit list that the engine lays out: parameters by unit, kept
/// activations of a sample, the slot of a sample or trajectory, memory of a producer and of frozen networks.
/// Allocates no weights and makes no environment: `env` is what the job's is, nothing where it has none.
/// Errors: invalid_argument (a model that cannot be made); those of make_agent, Demonstrations::open, sample_layout.
Result<ModelCost> model_cost(const JobConfig& job, const EnvSpec& env);

}  // namespace troupe::workers
