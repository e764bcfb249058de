// Devices and errors.
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
// NVIDIA's words for common errors
const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "no error";
    case cudaErrorInvalidValue:
      return "invalid argument";
    case cudaErrorMemoryAllocation:
      return "out of memory";
    case cudaErrorNoDevice:
      return "no CUDA-capable device is detected";
    case cudaErrorInvalidDevice:
      return "invalid device ordinal";
    case cudaErrorInvalidResourceHandle:
      return "invalid resource handle";
    case cudaErrorStreamCaptureUnsupported:
      return "operation not permitted when stream is capturing";
    case cudaErrorStreamCaptureInvalidated:
      return "operation failed due to a previous error during capture";
    case cudaErrorHostMemoryAlreadyRegistered:
      return "part or all of the requested memory range is already mapped";
    case cudaErrorHostMemoryNotRegistered:
      return "pointer does not correspond to a registered memory region";
    default:
      return "an error that the stand-in has no words for";
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

}  // extern "C"
