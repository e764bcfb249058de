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

/// Loads the module for GPUs (device/module.h). Errors: those of module_entry.
Result<void> load_device_module();

/// Opens a device of this machine, numbered as in the inventory, through that module.
/// Errors: those of module_entry, and of the device.
Result<ComputeDevice> open_device(int ordinal);

/// What the module exports under kOpenDeviceEntry.
using OpenDeviceEntry = void(int ordinal, Result<ComputeDevice>* opened);
inline constexpr char kOpenDeviceEntry[] = "troupe_open_device_1";

}  // namespace troupe::kernels
