#pragma once

#include <cstdint>

#include "base/namespaces.h"

namespace troupe::device {

/// The part of NVML that nvml.cpp calls, as NVIDIA documents it (docs.nvidia.com/deploy/nvml-api): NVML is in the
/// driver, so that no header of it need be here to build. Names without their "nvml".

/// nvmlReturn_t
using NvmlStatus = int;
inline constexpr NvmlStatus kNvmlSuccess = 0, kNvmlNotSupported = 3, kNvmlNoPermission = 4, kNvmlDriverNotLoaded = 9,
                            kNvmlLibraryNotFound = 12, kNvmlGpuIsLost = 15, kNvmlVersionMismatch = 18;
/// nvmlDevice_t
using NvmlHandle = struct NvmlHandleOf*;

/// nvmlPciInfo_t, version 3
struct NvmlPciInfo {
  char bus_id_legacy[16];
  unsigned domain, bus, device;
  unsigned pci_device_id, pci_subsystem_id;
  char bus_id[32];
};
/// nvmlMemory_t
struct NvmlMemory {
  unsigned long long total, free, used;
};
/// nvmlMemory_v2_t; `version` is set by the caller.
struct NvmlMemory2 {
  unsigned version;
  unsigned long long total, reserved, free, used;
};
inline constexpr unsigned kNvmlMemory2Version = sizeof(NvmlMemory2) | 2U << 24;

/// nvmlGpuP2PCapsIndex_t and nvmlGpuP2PStatus_t; NVML_NVLINK_MAX_LINKS
inline constexpr int kNvmlP2pNvLink = 2, kNvmlP2pOk = 0;
inline constexpr unsigned kNvmlMaxLinks = 18;
/// Characters of names, UUIDs and versions, with the 0 at their end.
inline constexpr unsigned kNvmlTextBytes = 96;

/// A function of the library; null until it is looked up, and where the driver is too old to have it.
template <class... Args>
struct NvmlEntry {
  const char* name;
  NvmlStatus (*call)(Args...) = nullptr;
};

/// What is called of the library. nvmlErrorString is beside them, since it returns a text.
struct NvmlEntries {
  NvmlEntry<> init{"nvmlInit_v2"};
  NvmlEntry<> shutdown{"nvmlShutdown"};
  NvmlEntry<char*, unsigned> driver_version{"nvmlSystemGetDriverVersion"};
  NvmlEntry<int*> cuda_version{"nvmlSystemGetCudaDriverVersion_v2"};  ///< 1000 * major + 10 * minor
  NvmlEntry<unsigned*> count{"nvmlDeviceGetCount_v2"};
  NvmlEntry<unsigned, NvmlHandle*> by_index{"nvmlDeviceGetHandleByIndex_v2"};
  NvmlEntry<NvmlHandle, NvmlPciInfo*> pci_info{"nvmlDeviceGetPciInfo_v3"};
  NvmlEntry<NvmlHandle, char*, unsigned> uuid{"nvmlDeviceGetUUID"};
  NvmlEntry<NvmlHandle, char*, unsigned> name{"nvmlDeviceGetName"};
  NvmlEntry<NvmlHandle, int*, int*> capability{"nvmlDeviceGetCudaComputeCapability"};
  NvmlEntry<NvmlHandle, NvmlMemory*> memory{"nvmlDeviceGetMemoryInfo"};

  /// Not in every driver.
  NvmlEntry<NvmlHandle, NvmlMemory2*> memory2{"nvmlDeviceGetMemoryInfo_v2"};
  NvmlEntry<NvmlHandle, unsigned*, unsigned*> mig_mode{"nvmlDeviceGetMigMode"};  ///< now, and after a reset
  NvmlEntry<NvmlHandle, NvmlHandle, int, int*> p2p_status{"nvmlDeviceGetP2PStatus"};
  NvmlEntry<NvmlHandle, unsigned, int*> link_state{"nvmlDeviceGetNvLinkState"};
  NvmlEntry<NvmlHandle, unsigned, NvmlPciInfo*> link_remote{"nvmlDeviceGetNvLinkRemotePciInfo_v2"};
};

}  // namespace troupe::device
