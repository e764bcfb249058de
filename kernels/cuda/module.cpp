// The entry of the module for GPUs (kernels/device_module.h).
#include <cstdlib>
#include <utility>

#include "device/cuda/cuda_device.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/device_module.h"

namespace troupe::kernels {

extern "C" __attribute__((visibility("default"))) void troupe_open_device_1(int ordinal,
                                                                            Result<ComputeDevice>* opened) {
  // counts devices as the inventory does (device/nvml.h); read by the first call of CUDA
  ::setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", /*overwrite=*/1);
  auto device = device::make_cuda_device(ordinal);
  if (!device) {
    *opened = device.error();
    return;
  }
  auto kernels = cuda::make_cuda_kernels(**device);
  *opened = ComputeDevice{std::move(*device), std::move(kernels)};
}

}  // namespace troupe::kernels
