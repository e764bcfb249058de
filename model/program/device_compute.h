#pragma once

#include "device/device.h"
#include "kernels/device_names.h"

namespace troupe::model {

/// What computes a program on a device, and in which order.
struct DeviceCompute {
  kernels::DeviceKernels& kernels;
  device::Stream& stream;
};

}  // namespace troupe::model
