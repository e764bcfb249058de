#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace troupe::device {

/// One NVIDIA device of this machine.
struct NvmlDevice {
  /// "H200", "RTX 6000 Ada": the driver's name without maker, series, socket and memory. "A100" has two sizes.
  std::string model;
  /// What CUDA gives out: without what the driver reserves, where the driver says how much that is (since R510).
  std::int64_t memory_bytes = 0;
  /// Compute capability.
  int major = 0, minor = 0;
};

/// Two devices that reach each other's memory over NVLink, by their positions in NvmlFacts::devices, first < second.
struct NvLinkPair {
  std::size_t first = 0, second = 0;
  /// Links between them; through switches, the links that each of them has to switches. At least 1.
  int links = 0;
};

/// What the driver says of this machine.
struct NvmlFacts {
  /// "580.65.06"; empty: there is no driver, and no device.
  std::string driver;
  /// The newest CUDA that the driver runs: "13.0".
  std::string cuda;
  /// Those that this process may use. A position here is the number that CUDA gives the device, if CUDA_DEVICE_ORDER is
  /// PCI_BUS_ID. The module for GPUs sets that before its first call of CUDA (whose default is fastest first).
  std::vector<NvmlDevice> devices;
  /// By first, then second. Empty too where the driver does not say.
  std::vector<NvLinkPair> nvlinks;
};

/// Asks the driver through NVML, its library libnvidia-ml.so.1, which is loaded for this call: a build needs nothing of
/// NVIDIA's. The variable TROUPE_NVML names another library (tests/device/nvml). Devices that this user may not open
/// are left out, and so are those that CUDA_VISIBLE_DEVICES leaves out (device/visible_devices.h). Any thread; takes
/// from milliseconds to, where the driver must wake the devices first, some seconds.
/// Errors, each with what to do: failed_precondition (a driver that does not work: "nvmlInit_v2: Driver Not Loaded;
/// ..."; a device that is divided into parts (MIG); a library TROUPE_NVML that cannot be loaded), invalid_argument
/// (CUDA_VISIBLE_DEVICES).
Result<NvmlFacts> read_nvml();

}  // namespace troupe::device
