#pragma once

#include "base/result.h"
#include "configs/job_config.h"
#include "placement/plan.h"

namespace troupe::workers {

/// Whether this build and this machine can run a plan's learners on the devices that it gives them; nothing to check
/// where they sit on cores. On devices this build fine-tunes DreamZero, with the learners of one machine, by AdamW
/// without averages, and keeps activations there. Loads the module for devices (device/module.h).
/// Errors, each with the key to change: invalid_argument; those of load_device_module.
Result<void> check_device_support(const JobConfig& config, const Plan& plan);

}  // namespace troupe::workers
