// The entries of the module for GPUs (device/module.h).
#include <cstdlib>
#include <utility>

#include "comm/collective/nccl_collective.h"
#include "comm/collective/nccl_group.h"
#include "device/cuda/cuda_device.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/device_module.h"

#define TROUPE_ENTRY extern "C" __attribute__((visibility("default"))) void

namespace troupe::app {

TROUPE_ENTRY troupe_open_device_1(int ordinal, Result<kernels::ComputeDevice>* opened) {
  // counts devices as the inventory does (device/nvml.h); read by the first call of CUDA
  ::setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", /*overwrite=*/1);
  auto device = device::make_cuda_device(ordinal);
  if (!device) {
    *opened = device.error();
    return;
  }
  auto computes = kernels::cuda::make_cuda_kernels(**device);
  *opened = kernels::ComputeDevice{std::move(*device), std::move(computes)};
}

TROUPE_ENTRY troupe_join_nccl_1(std::unique_ptr<Collective>* host, device::Device* device,
                                std::chrono::milliseconds timeout, Result<std::unique_ptr<Collective>>* joined) {
  *joined = make_nccl_collective(std::move(*host), *device, timeout);
}

}  // namespace troupe::app
