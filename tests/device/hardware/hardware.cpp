// What standin.h declares, on a GPU: nothing is drawn or counted, and what the device says of its work is all that is
// found. Without the devices that a test wants it is skipped by name.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include "tests/device/standin/standin.h"

namespace troupe::device::standin {

void reset(const Options& options) {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess) devices = 0;
  if (devices < options.devices) GTEST_SKIP() << "wants CUDA devices: " << options.devices << ", there are " << devices;
}

Report report() {
  Report report;
  const cudaError_t error = cudaDeviceSynchronize();
  if (error != cudaSuccess) report.findings.emplace_back(cudaGetErrorString(error));
  return report;
}

bool counts() { return false; }

}  // namespace troupe::device::standin
