#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "configs/model_config.h"
#include "kernels/device_module.h"

namespace troupe::workers {

/// The device that DreamZero's transformer computes on, opened; none: cores. `name` as PolicyOptions::device. Logs
/// which, and why it is cores where "auto" finds none. On a device bf16 products are native in this process
/// (kernels/product.h).
/// Errors: invalid_argument (another name, heads of a size that devices do not take), and, where a number is given,
/// those of kernels::open_device.
Result<std::optional<kernels::ComputeDevice>> open_policy_device(const std::string& name, const DitConfig& dit);

}  // namespace troupe::workers
