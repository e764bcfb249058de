#pragma once

#include "configs/job_config.h"
#include "model/cores/core_rates.h"
#include "placement/plan.h"

namespace troupe::app {

/// Gives a cluster that this machine plans for the rates of its bf16 products, where the job has any: from the user's
/// cache (app/machine_cache.h) when they were measured there with this processor and
/// this LibTorch, else measured now, which takes about 0.2 s, and kept there. Where the cache cannot be written a line
/// in the log says so. Once a process.
void add_product_rates(ClusterSnapshot& cluster, const JobConfig& job);

/// From here on this process multiplies bf16 as the plan of this job on this machine says.
void use_product_form(const JobConfig& job);

/// What kernels cost on this machine's cores, from the same file (member "cores") when it was measured there with this
/// processor, number of cores, LibTorch and version of what is measured, else measured now, which takes some
/// seconds, and kept there. Once a process; while nothing multiplies.
const CoreRates& own_core_rates();

}  // namespace troupe::app
