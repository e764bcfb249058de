#pragma once

#include <memory>

#include "base/result.h"
#include "device/device.h"
#include "kernels/device_kernels.h"

namespace troupe::kernels {

/// A device, and what computes on it, which goes first.
struct ComputeDevice {
  std::unique_ptr<device::Device> device;
  std::unique_ptr<DeviceKernels> kernels;
};

/// Loads the module. Errors: failed_precondition (no module, or of another build).
Result<void> load_device_module();

/// Opens a device of this machine, numbered as in the inventory, through the module that has all of CUDA: the shared
/// library libtroupe_cuda.so beside the program, in ../lib/troupe seen from there, or where the environment variable
/// TROUPE_DEVICE_MODULE says. The module is loaded with the first device and stays.
/// Errors: failed_precondition (no module, or of another build); those of the device.
Result<ComputeDevice> open_device(int ordinal);

/// What the module exports under kOpenDeviceEntry. The number grows with what the two must agree on.
using OpenDeviceEntry = void(int ordinal, Result<ComputeDevice>* opened);
inline constexpr char kOpenDeviceEntry[] = "troupe_open_device_1";

}  // namespace troupe::kernels
