#pragma once

#include "base/result.h"
#include "configs/job_config.h"
#include "placement/plan.h"

namespace troupe::workers {

/// Whether this build and this machine can use the devices that a plan gives its actors; nothing to check where all sit
/// on cores. On devices learners of this build train DreamZero, in an environment by the clipped objective alone
/// (model/loss/policy_gradient_loss.h), on one machine, by AdamW without averages, and keep activations there. Loads
/// the module for devices (device/module.h).
/// Errors, each with the key to change: invalid_argument; those of load_device_module.
Result<void> check_device_support(const JobConfig& config, const Plan& plan);

}  // namespace troupe::workers
