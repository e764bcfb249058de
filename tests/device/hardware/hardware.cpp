// What standin.h declares, on a GPU: nothing is drawn, what the device says of its work is all that is found, and of
// the counts there is that of calls that make the host wait. Without the devices that a test wants it is skipped by
// name.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <map>
#include <mutex>
#include <string>

#include "tests/device/standin/standin.h"

namespace troupe::device::standin {
namespace {

/// Waits of all threads by the names that the stand-ins give them.
class HostWaits {
 public:
  static HostWaits& get() {
    static HostWaits waits;
    return waits;
  }
  void add(const std::string& call) {
    const std::lock_guard lock(mutex_);
    ++counts_[call];
  }
  std::map<std::string, std::uint64_t> counts() {
    const std::lock_guard lock(mutex_);
    return counts_;
  }

 private:
  std::mutex mutex_;
  std::map<std::string, std::uint64_t> counts_;
};

bool is_pageable(const void* pointer) {
  cudaPointerAttributes attributes{};
  return cudaPointerGetAttributes(&attributes, pointer) == cudaSuccess && attributes.type == cudaMemoryTypeUnregistered;
}

}  // namespace

void reset(const Options& options) {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess) devices = 0;
  if (devices < options.devices) GTEST_SKIP() << "wants CUDA devices: " << options.devices << ", there are " << devices;
}

Report report() {
  Report report;
  const cudaError_t error = cudaDeviceSynchronize();
  if (error != cudaSuccess) report.findings.emplace_back(cudaGetErrorString(error));
  report.synchronising = HostWaits::get().counts();
  return report;
}

bool counts() { return false; }

}  // namespace troupe::device::standin

using troupe::device::standin::HostWaits;
using troupe::device::standin::is_pageable;

// The linker sends calls of these functions here (--wrap, CMakeLists.txt), and from here to the CUDA runtime.
extern "C" {

cudaError_t real_stream_synchronize(cudaStream_t stream) __asm__("__real_cudaStreamSynchronize");
cudaError_t counted_stream_synchronize(cudaStream_t stream) __asm__("__wrap_cudaStreamSynchronize");
cudaError_t counted_stream_synchronize(cudaStream_t stream) {
  HostWaits::get().add("cudaStreamSynchronize");
  return real_stream_synchronize(stream);
}

cudaError_t real_event_synchronize(cudaEvent_t event) __asm__("__real_cudaEventSynchronize");
cudaError_t counted_event_synchronize(cudaEvent_t event) __asm__("__wrap_cudaEventSynchronize");
cudaError_t counted_event_synchronize(cudaEvent_t event) {
  HostWaits::get().add("cudaEventSynchronize");
  return real_event_synchronize(event);
}

cudaError_t real_free(void* pointer) __asm__("__real_cudaFree");
cudaError_t counted_free(void* pointer) __asm__("__wrap_cudaFree");
cudaError_t counted_free(void* pointer) {
  if (pointer != nullptr) HostWaits::get().add("cudaFree");
  return real_free(pointer);
}

cudaError_t real_memcpy_async(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                              cudaStream_t stream) __asm__("__real_cudaMemcpyAsync");
cudaError_t counted_memcpy_async(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                                 cudaStream_t stream) __asm__("__wrap_cudaMemcpyAsync");
cudaError_t counted_memcpy_async(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  if (is_pageable(from)) HostWaits::get().add("copy from memory that is not pinned");
  if (is_pageable(to)) HostWaits::get().add("copy to memory that is not pinned");
  return real_memcpy_async(to, from, bytes, kind, stream);
}

}  // extern "C"
