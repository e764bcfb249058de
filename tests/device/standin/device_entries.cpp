// Devices and errors. Numbers of a device that nobody has: what callers read of an H100, with the memory of Options.
#include <cuda_runtime_api.h>

#include <cstring>

#include "tests/device/standin/runtime.h"

namespace troupe::device::standin {
namespace {
thread_local cudaError_t last_error = cudaSuccess;
}

cudaError_t fail(cudaError_t error) { return last_error = error; }

int& current_device() {
  thread_local int device = 0;
  return device;
}

}  // namespace troupe::device::standin

using troupe::device::standin::current_device;
using troupe::device::standin::fail;
using troupe::device::standin::last_error;
using troupe::device::standin::Runtime;

extern "C" {

cudaError_t cudaGetLastError() { return std::exchange(last_error, cudaSuccess); }
cudaError_t cudaPeekAtLastError() { return last_error; }
const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "no error";
    case cudaErrorMemoryAllocation:
      return "out of memory";
    case cudaErrorInvalidValue:
      return "invalid argument";
    case cudaErrorInvalidConfiguration:
      return "invalid configuration argument";
    case cudaErrorInvalidResourceHandle:
      return "invalid resource handle";
    case cudaErrorInvalidDevice:
      return "invalid device ordinal";
    case cudaErrorInvalidDeviceFunction:
      return "invalid device function";
    case cudaErrorStreamCaptureUnsupported:
      return "operation not permitted when stream is capturing";
    case cudaErrorStreamCaptureInvalidated:
      return "operation failed due to a previous error during capture";
    case cudaErrorStreamCaptureUnjoined:
      return "capturing stream has unjoined work";
    default:
      return "an error of the stand-in";
  }
}

cudaError_t cudaGetDeviceCount(int* count) {
  auto& runtime = Runtime::get();
  const auto lock = runtime.lock();
  *count = runtime.devices();
  return *count == 0 ? fail(cudaErrorNoDevice) : cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  auto& runtime = Runtime::get();
  const auto lock = runtime.lock();
  if (device < 0 || device >= runtime.devices()) return fail(cudaErrorInvalidDevice);
  current_device() = device;
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* device) {
  *device = current_device();
  return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) { return cudaDriverGetVersion(version); }

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {
  switch (attribute) {
    case cudaDevAttrComputeCapabilityMajor:
      *value = 9;
      return cudaSuccess;
    case cudaDevAttrComputeCapabilityMinor:
      *value = 0;
      return cudaSuccess;
    case cudaDevAttrMultiProcessorCount:
      *value = 132;
      return cudaSuccess;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      *value = 227 * 1024;
      return cudaSuccess;
    default:
      return fail(cudaErrorInvalidValue);
  }
}

}  // extern "C"
