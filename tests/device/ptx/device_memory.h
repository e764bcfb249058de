#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "tests/device/ptx/types.h"

namespace troupe::device::ptx {

/// A range of device addresses and where its bytes are.
struct Allocation {
  std::uint64_t address = 0, size = 0;
  std::byte* bytes = nullptr;
  /// One bit a byte: someone has written it. Empty for host memory, which counts as written.
  std::vector<std::uint64_t> written;
  /// Place in DeviceMemory's list, the key of a launch's shadow.
  std::uint32_t index = 0;
  bool is_freed = false, is_constant = false, is_host = false;

  bool contains(std::uint64_t at, std::uint64_t count) const {
    return at >= address && at - address <= size && count <= size - (at - address);
  }
  bool is_written(std::uint64_t offset, std::uint64_t count) const;
  void mark_written(std::uint64_t offset, std::uint64_t count);
};

/// The memory of a device: allocations at addresses that fault when the host reads them, their bytes elsewhere.
/// Every allocation has 64 KiB pages of its own and starts 256 bytes into the first, so that the
/// bytes on either side belong to no allocation; addresses are not given out twice. Not thread-safe.
class DeviceMemory {
 public:
  DeviceMemory();
  ~DeviceMemory();
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  /// Address of `size` bytes that count as never written, a multiple of 256 and not of 512.
  /// Errors: resource_exhausted when addresses (4 TiB) or the host's memory are used up.
  Result<std::uint64_t> allocate(std::uint64_t size);
  /// From now on every access is a use after free; the bytes are given back.
  /// Errors: invalid_argument for what allocate() did not return or what is freed already.
  Result<void> free(std::uint64_t address);

  /// Kernels may access this host memory at its own address: pinned or registered memory. It counts as written, and
  /// must stay until unmap_host. Errors: invalid_argument for an empty range or one that overlaps another.
  Result<void> map_host(std::span<std::byte> range);
  Result<void> unmap_host(const void* begin);

  /// Copies and fills by whole ranges. copy_out gives zeros for bytes that were never written, which
  /// is_written() tells.
  /// Errors: invalid_argument for a range that is not inside one live allocation.
  Result<void> copy_in(std::uint64_t address, std::span<const std::byte> bytes);
  Result<void> copy_out(std::uint64_t address, std::span<std::byte> bytes) const;
  Result<void> fill(std::uint64_t address, std::byte value, std::uint64_t count);
  Result<bool> is_written(std::uint64_t address, std::uint64_t count) const;

  /// Kernels may not write it: for `.const` variables.
  void make_constant(std::uint64_t address);

  /// The allocation, live or freed, whose pages hold this address, or null. Valid until the next allocate or map_host.
  Allocation* find(std::uint64_t address);
  const Allocation* find(std::uint64_t address) const { return const_cast<DeviceMemory*>(this)->find(address); }
  Allocation& at(std::uint32_t index) { return *allocations_[index]; }
  std::size_t size() const { return allocations_.size(); }

 private:
  Result<Allocation*> live(std::uint64_t address, std::uint64_t count) const;

  std::uint64_t base_ = 0;
  /// By page of 64 KiB: index of the allocation plus one.
  std::vector<std::uint32_t> pages_;
  std::vector<std::unique_ptr<Allocation>> allocations_;
  /// Host ranges by their first address.
  std::map<std::uint64_t, std::uint32_t> host_;
};

}  // namespace troupe::device::ptx
