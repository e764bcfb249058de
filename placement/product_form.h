#pragma once

#include <string>

#include "configs/job_config.h"
#include "placement/plan.h"

namespace troupe::placement {

/// Whether a job computes in bf16: its learner or its frozen encoders.
bool multiplies_bf16(const JobConfig& job);

/// How a job's bf16 products on cores are computed, "native" or "widened": precision.products, or with auto the form
/// that the processor's instructions speak for (native with matrix tiles), unless the other one was measured to be at
/// least 1.3 times as fast.
std::string product_form(const JobConfig& job, const ProductRates& rates);

}  // namespace troupe::placement
