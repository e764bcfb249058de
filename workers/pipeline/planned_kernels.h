#pragma once

#include <string>
#include <vector>

#include "configs/job_config.h"
#include "model/wan/unit_kernels.h"
#include "placement/plan.h"
#include "workers/pipeline/planned_step.h"

namespace troupe::workers {

/// What each unit of a planned job that fine-tunes DreamZero runs for one micro-batch, with products in that form
/// (kernels/product.h: "native" or "widened").
std::vector<UnitKernels> planned_kernels(const JobConfig& job, const Plan& plan, const std::string& form);

/// Of one rank's step: products and attention, what runs again included.
double product_flops(const PlannedStep& step, const std::vector<UnitKernels>& units);

}  // namespace troupe::workers
