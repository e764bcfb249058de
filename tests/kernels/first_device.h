#pragma once

#include "device/cuda/cuda_device.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/device_module.h"

namespace troupe::testing {

/// Device 0 as this program has it: of the stand-ins, or with label gpu of hardware.
inline kernels::ComputeDevice open_first_device() {
  kernels::ComputeDevice opened{device::make_cuda_device(0).value(), nullptr};
  opened.kernels = kernels::cuda::make_cuda_kernels(*opened.device);
  return opened;
}

}  // namespace troupe::testing
