// Memory: device memory whose addresses fault on the host, pinned memory, copies and fills.
#include <cuda_runtime_api.h>
#include <fmt/core.h>

#include <cstdlib>
#include <cstring>
#include <memory>

#include "tests/device/standin/runtime.h"

namespace troupe::device::standin {
namespace {

std::uint64_t address_of(const void* pointer) { return reinterpret_cast<std::uint64_t>(pointer); }

/// A copy of `rows` rows of `width` bytes.
struct Copy {
  std::uint64_t to = 0, to_pitch = 0, from = 0, from_pitch = 0, width = 0, rows = 0;
  /// What memory that is not pinned held when the copy was enqueued.
  std::shared_ptr<const std::vector<std::byte>> staged = nullptr;
};

std::uint64_t extent(std::uint64_t pitch, const Copy& copy) { return pitch * (copy.rows - 1) + copy.width; }

void run_copy(const Copy& copy, const char* name, std::vector<Access>& accesses) {
  auto& runtime = Runtime::get();
  for (std::uint64_t row = 0; row < copy.rows; ++row) {
    const auto to_at = copy.to + row * copy.to_pitch, from_at = copy.from + row * copy.from_pitch;
    const auto to = runtime.place(to_at, copy.width);
    const auto from = copy.staged ? Place{} : runtime.place(from_at, copy.width).value_or(Place{});
    const std::byte* bytes = copy.staged ? copy.staged->data() + row * copy.from_pitch : from.bytes;
    if (!to || bytes == nullptr) return runtime.find(fmt::format("{}: memory that was freed meanwhile", name));
    if (from.allocation != nullptr && !from.allocation->is_written(from_at - from.allocation->address, copy.width))
      runtime.find(fmt::format("{}: reads bytes of {:#x} that were never written", name, from_at));
    std::memmove(to->bytes, bytes, copy.width);
    if (to->allocation != nullptr) to->allocation->mark_written(to_at - to->allocation->address, copy.width);
    accesses.push_back({to_at, to_at + copy.width, true});
    if (!copy.staged) accesses.push_back({from_at, from_at + copy.width, false});
  }
}

cudaError_t enqueue_copy(Copy copy, cudaStream_t handle, const char* name) {
  auto& runtime = Runtime::get();
  Stream* stream = runtime.stream(handle);
  if (stream == nullptr) return fail(cudaErrorInvalidResourceHandle);
  if (copy.width == 0 || copy.rows == 0) return cudaSuccess;
  const auto to = runtime.place(copy.to, extent(copy.to_pitch, copy));
  const auto from = runtime.place(copy.from, extent(copy.from_pitch, copy));
  if (!to || !from) return fail(cudaErrorInvalidValue);
  const bool from_pageable = from->allocation == nullptr && !from->is_pinned;
  const bool to_pageable = to->allocation == nullptr && !to->is_pinned;
  if (stream->capture != nullptr && (from_pageable || to_pageable)) {
    stream->capture->is_broken = true;
    return fail(cudaErrorStreamCaptureUnsupported);
  }
  ++runtime.report().copies;
  if (from_pageable) {
    ++runtime.report().synchronising["copy from memory that is not pinned"];
    copy.staged =
        std::make_shared<const std::vector<std::byte>>(from->bytes, from->bytes + extent(copy.from_pitch, copy));
  }
  runtime.enqueue(
      *stream, {.name = name, .run = [copy, name](std::vector<Access>& accesses) { run_copy(copy, name, accesses); }});
  if (to_pageable) runtime.synchronise(*stream, "copy to memory that is not pinned");
  return cudaSuccess;
}

}  // namespace
}  // namespace troupe::device::standin

using troupe::device::standin::Access;
using troupe::device::standin::address_of;
using troupe::device::standin::current_device;
using troupe::device::standin::enqueue_copy;
using troupe::device::standin::fail;
using troupe::device::standin::Runtime;

extern "C" {

cudaError_t cudaMalloc(void** pointer, std::size_t bytes) {
  auto& runtime = Runtime::get();
  const auto lock = runtime.lock();
  if (runtime.breaks_capture()) return fail(cudaErrorStreamCaptureUnsupported);
  const auto address = runtime.allocate(current_device(), bytes);
  if (!address) return fail(cudaErrorMemoryAllocation);
  *pointer = reinterpret_cast<void*>(*address);
  return cudaSuccess;
}

cudaError_t cudaFree(void* pointer) {
  if (pointer == nullptr) return cudaSuccess;
  auto& runtime = Runtime::get();
  const auto lock = runtime.lock();
  if (runtime.breaks_capture()) return fail(cudaErrorStreamCaptureUnsupported);
  // it waits for the whole device
  ++runtime.report().synchronising["cudaFree"];
  runtime.finish_device(current_device(), "cudaFree");
  const auto error = runtime.free(address_of(pointer));
  return error == cudaSuccess ? error : fail(error);
}

cudaError_t cudaHostAlloc(void** pointer, std::size_t bytes, unsigned) {
  auto& runtime = Runtime::get();
  const auto lock = runtime.lock();
  if (runtime.breaks_capture()) return fail(cudaErrorStreamCaptureUnsupported);
  *pointer = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  if (*pointer == nullptr || !runtime.map_host(*pointer, bytes)) return fail(cudaErrorMemoryAllocation);
  return cudaSuccess;
}

cudaError_t cudaFreeHost(void* pointer) {
  if (pointer == nullptr) return cudaSuccess;
  const auto error = cudaHostUnregister(pointer);
  if (error == cudaSuccess) std::free(pointer);
  return error;
}

cudaError_t cudaHostRegister(void* pointer, std::size_t bytes, unsigned) {
  auto& runtime = Runtime::get();
  const auto lock = runtime.lock();
  if (runtime.breaks_capture()) return fail(cudaErrorStreamCaptureUnsupported);
  return runtime.map_host(pointer, bytes) ? cudaSuccess : fail(cudaErrorHostMemoryAlreadyRegistered);
}

cudaError_t cudaHostUnregister(void* pointer) {
  auto& runtime = Runtime::get();
  const auto lock = runtime.lock();
  if (runtime.breaks_capture()) return fail(cudaErrorStreamCaptureUnsupported);
  runtime.finish_device(current_device(), "cudaHostUnregister");
  return runtime.unmap_host(pointer) ? cudaSuccess : fail(cudaErrorHostMemoryNotRegistered);
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind, cudaStream_t stream) {
  const auto lock = Runtime::get().lock();
  return enqueue_copy({address_of(to), bytes, address_of(from), bytes, bytes, bytes == 0 ? 0U : 1U}, stream,
                      "cudaMemcpyAsync");
}

cudaError_t cudaMemcpy2DAsync(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                              std::size_t width, std::size_t rows, cudaMemcpyKind, cudaStream_t stream) {
  if (width > to_pitch || width > from_pitch) return fail(cudaErrorInvalidPitchValue);
  const auto lock = Runtime::get().lock();
  return enqueue_copy({address_of(to), to_pitch, address_of(from), from_pitch, width, rows}, stream,
                      "cudaMemcpy2DAsync");
}

cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t handle) {
  auto& runtime = Runtime::get();
  const auto lock = runtime.lock();
  auto* stream = runtime.stream(handle);
  if (stream == nullptr) return fail(cudaErrorInvalidResourceHandle);
  if (bytes == 0) return cudaSuccess;
  const auto at = address_of(to);
  if (!runtime.place(at, bytes)) return fail(cudaErrorInvalidValue);
  runtime.enqueue(*stream, {.name = "cudaMemsetAsync", .run = [=](std::vector<Access>& accesses) {
                              auto& now = Runtime::get();
                              if (const auto place = now.place(at, bytes)) {
                                std::memset(place->bytes, value, bytes);
                                if (place->allocation != nullptr)
                                  place->allocation->mark_written(at - place->allocation->address, bytes);
                                accesses.push_back({at, at + bytes, true});
                              } else {
                                now.find("cudaMemsetAsync: memory that was freed meanwhile");
                              }
                            }});
  return cudaSuccess;
}

}  // extern "C"
