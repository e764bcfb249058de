#pragma once

#include <memory>

#include "kernels/device_kernels.h"

namespace troupe::kernels::cuda {

/// The kernels of this folder on a device of make_cuda_device (device/cuda/cuda_device.h), which outlives them. Streams
/// are the device's; each gets a handle and a workspace of cuBLASLt with its first product.
std::unique_ptr<DeviceKernels> make_cuda_kernels(device::Device& device);

}  // namespace troupe::kernels::cuda
