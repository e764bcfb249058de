#pragma once

#include "base/namespaces.h"

namespace troupe::kernels {

/// For headers that only name them: kernels/device_kernels.h has the one, kernels/device_module.h the other.
class DeviceKernels;
struct ComputeDevice;

}  // namespace troupe::kernels
