#pragma once

#include <cstddef>

#include "device/device.h"
#include "kernels/device_names.h"

namespace troupe::model {

/// What computes a program on a device, and in which order.
struct DeviceCompute {
  kernels::DeviceKernels& kernels;
  device::Stream& stream;
  /// Passes that are kept as graphs (PassGraphs); 0: none.
  std::size_t most_graphs = 0;
};

}  // namespace troupe::model
