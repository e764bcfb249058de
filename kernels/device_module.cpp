#include "kernels/device_module.h"

#include "device/module.h"

namespace troupe::kernels {

Result<void> load_device_module() {
  TROUPE_TRY(device::module_entry(kOpenDeviceEntry));
  return {};
}

Result<ComputeDevice> open_device(int ordinal) {
  TROUPE_ASSIGN(void* const entry, device::module_entry(kOpenDeviceEntry));
  Result<ComputeDevice> opened = ComputeDevice();
  reinterpret_cast<OpenDeviceEntry*>(entry)(ordinal, &opened);
  return opened;
}

}  // namespace troupe::kernels
