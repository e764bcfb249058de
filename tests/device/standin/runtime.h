#pragma once

#include <cuda_runtime_api.h>

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/random.h"
#include "tests/device/ptx/device_memory.h"
#include "tests/device/ptx/launch.h"
#include "tests/device/standin/standin.h"
#include "tests/device/standin/stream.h"

namespace troupe::device::standin {

/// Where bytes that an operation names are.
struct Place {
  std::byte* bytes = nullptr;
  /// Device memory, of the allocation at `allocation`, or null: the host's.
  ptx::Allocation* allocation = nullptr;
  /// Host memory that devices reach.
  bool is_pinned = false;
};

/// A kernel as a launch names it.
struct KernelEntry {
  std::size_t binary = 0;
  std::string mangled;
  std::string name;
  int dynamic_shared_bytes = 48 * 1024;
};

/// What stands behind the entries of the CUDA runtime: devices, streams and what is enqueued there. One for the
/// process. Nothing runs when it is enqueued but for a few items that are drawn; the rest runs in a drawn legal order
/// when the host waits. Every member but lock() is called under the lock.
class Runtime {
 public:
  static Runtime& get();
  std::unique_lock<std::mutex> lock() { return std::unique_lock(mutex_); }

  void reset(const Options& options);
  const Options& options() const { return options_; }
  Report& report() { return report_; }
  /// Adds it to the report's findings unless it is there.
  void find(std::string sentence);

  // binaries and kernels
  std::size_t add_binary(const void* wrapper);
  void add_kernel(const void* entry, std::size_t binary, std::string mangled);
  KernelEntry* kernel(const void* entry);
  /// The PTX of a binary on a device, loaded when first asked for. Null, with a finding, if it cannot be.
  const ptx::Program* program(std::size_t binary, int device);

  // memory
  int devices() const { return static_cast<int>(devices_.size()); }
  ptx::DeviceMemory& memory(int device) { return *devices_[static_cast<std::size_t>(device)].memory; }
  std::uint64_t used(int device) const { return devices_[static_cast<std::size_t>(device)].used; }
  std::optional<std::uint64_t> allocate(int device, std::uint64_t bytes);
  /// Errors: cudaErrorInvalidValue for what is not an allocation.
  cudaError_t free(std::uint64_t address);
  bool map_host(void* begin, std::uint64_t bytes);
  bool unmap_host(void* begin);
  /// Empty where [address, address + bytes) is not inside one live allocation, if it is a device's.
  std::optional<Place> place(std::uint64_t address, std::uint64_t bytes);
  void forget(std::uint64_t begin, std::uint64_t bytes) { log_.forget(begin, begin + bytes); }

  // streams
  Stream* make_stream(int device);
  /// The stream of a handle; null for the default stream, which nothing here may use, and for what was destroyed.
  Stream* stream(cudaStream_t handle);
  void destroy(Stream* stream);
  /// Into the stream, or into the graph that captures it.
  void enqueue(Stream& stream, Item item);
  /// Runs items in a drawn order until the condition holds. `call` names the call that waits.
  /// The lock is free while all items wait for what is outside.
  template <class Condition>
  void run_until(const char* call, const Condition& holds) {
    while (!holds()) run_one(call);
  }
  /// Runs one item of a drawn stream, if one can go on.
  bool try_run_one();
  /// Something happened that an item waits for.
  void tell_waiters() { outside_.notify_all(); }
  void synchronise(Stream& stream, const char* call);
  /// All streams of a device.
  void finish_device(int device, const char* call);
  /// The host has seen all that happened before it.
  void host_sees(const VectorClock& clock) { host_.join(clock); }
  /// Whether this thread captures a stream, and makes a call that no capture allows: waits, or takes or gives memory.
  bool breaks_capture();
  /// A launch of a graph: its lists run as streams of their own, behind all that `stream` has.
  void launch(const Graph& graph, Stream& stream);
  const std::vector<std::unique_ptr<Stream>>& streams() const { return streams_; }

 private:
  struct Binary {
    const void* wrapper = nullptr;
    std::string ptx;
    std::map<int, std::unique_ptr<ptx::Program>> programs;
  };
  struct OneDevice {
    std::unique_ptr<ptx::DeviceMemory> memory;
    std::uint64_t used = 0;
  };
  Runtime() { reset({}); }
  void run_one(const char* call);
  /// Whether the first item of the stream ended.
  bool run_first(Stream& stream);

  std::mutex mutex_;
  /// What items wait for that another thread enqueues, or another process does, which nothing tells.
  std::condition_variable_any outside_;
  bool waits_outside_ = false;
  Options options_;
  Report report_;
  base::CounterRng random_{0, 0, 0};
  std::vector<Binary> binaries_;
  std::map<const void*, KernelEntry> kernels_;
  std::vector<OneDevice> devices_;
  /// by first address: bytes of pinned host memory
  std::map<std::uint64_t, std::uint64_t> pinned_;
  std::vector<std::unique_ptr<Stream>> streams_;
  std::uint32_t streams_made_ = 0;
  VectorClock host_;
  AccessLog log_;
};

/// Remembers the error for cudaGetLastError of this thread, and returns it.
cudaError_t fail(cudaError_t error);
/// The device that this thread chose.
int& current_device();

}  // namespace troupe::device::standin
