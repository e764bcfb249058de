#pragma once

#include "configs/job_config.h"
#include "placement/plan.h"

namespace troupe::app {

/// How fast this machine multiplies bf16: from the user's cache (CACHE/troupe/product_rates.json, base/cache_home.h)
/// when it was measured there with this processor and this LibTorch, else measured now, which takes about 0.2 s, and
/// kept there. A cache that cannot be read or written is a line in the log and a measurement.
ProductRates own_product_rates();

/// From here on this process multiplies bf16 as the plan of this job on this machine says.
void use_product_form(const JobConfig& job);

}  // namespace troupe::app
