#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "kernels/device_names.h"
#include "placement/plan.h"

namespace troupe::actors {

/// The device that the plan gives an actor, opened; null: it computes on cores. On a device bf16 products are native in
/// this process (kernels/product.h). Errors: those of kernels::open_device.
Result<std::shared_ptr<kernels::ComputeDevice>> open_planned_device(const Plan& plan, const std::string& actor);

}  // namespace troupe::actors
