#include "tests/device/ptx/device_memory.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "base/check.h"

namespace troupe::device::ptx {
namespace {

constexpr std::uint64_t kAddresses = std::uint64_t{1} << 42;
constexpr std::uint64_t kPage = 64 << 10;
constexpr std::uint64_t kFirst = 256;

/// Bits [from, from + count) of one word; count is 1..64 and stays within the word.
std::uint64_t bits(std::uint64_t from, std::uint64_t count) { return (~std::uint64_t{0} >> (64 - count)) << from; }

}  // namespace

bool Allocation::is_written(std::uint64_t offset, std::uint64_t count) const {
  if (is_host) return true;
  for (std::uint64_t at = offset, end = offset + count; at < end;) {
    const std::uint64_t part = std::min(end - at, 64 - at % 64), mask = bits(at % 64, part);
    if ((written[at / 64] & mask) != mask) return false;
    at += part;
  }
  return true;
}

void Allocation::mark_written(std::uint64_t offset, std::uint64_t count) {
  if (is_host) return;
  for (std::uint64_t at = offset, end = offset + count; at < end;) {
    const std::uint64_t part = std::min(end - at, 64 - at % 64);
    written[at / 64] |= bits(at % 64, part);
    at += part;
  }
}

DeviceMemory::DeviceMemory() {
  void* reserved = ::mmap(nullptr, kAddresses, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  TROUPE_CHECK(reserved != MAP_FAILED, "4 TiB of addresses without memory can be reserved");
  base_ = (reinterpret_cast<std::uint64_t>(reserved) + kPage - 1) / kPage * kPage;
}

DeviceMemory::~DeviceMemory() {
  for (const auto& allocation : allocations_) {
    if (!allocation->is_host) std::free(allocation->bytes);
  }
  ::munmap(reinterpret_cast<void*>(base_), kAddresses - kPage);
}

Result<std::uint64_t> DeviceMemory::allocate(std::uint64_t size) {
  const std::uint64_t count =
      (kFirst + size + kPage) / kPage;  // the last page has at least one byte behind the allocation
  if ((pages_.size() + count + 1) * kPage > kAddresses) {
    return Error{Errc::resource_exhausted, fmt::format("{} bytes do not fit into the device's addresses", size)};
  }
  // calloc leaves large blocks to the kernel until they are touched
  auto* bytes = static_cast<std::byte*>(std::calloc(std::max<std::uint64_t>(size, 1), 1));
  if (bytes == nullptr) return Error{Errc::resource_exhausted, fmt::format("no memory for {} bytes", size)};
  auto allocation = std::make_unique<Allocation>();
  allocation->address = base_ + pages_.size() * kPage + kFirst;
  allocation->size = size;
  allocation->bytes = bytes;
  allocation->written.resize(size / 64 + 1);
  allocation->index = static_cast<std::uint32_t>(allocations_.size());
  pages_.insert(pages_.end(), count, allocation->index + 1);
  allocations_.push_back(std::move(allocation));
  return allocations_.back()->address;
}

Result<void> DeviceMemory::free(std::uint64_t address) {
  Allocation* allocation = find(address);
  if (allocation == nullptr || allocation->address != address || allocation->is_host) {
    return invalid_argument(fmt::format("{:#x} is no address that allocate() returned", address));
  }
  if (allocation->is_freed) return invalid_argument(fmt::format("{:#x} is freed twice", address));
  allocation->is_freed = true;
  std::free(allocation->bytes);
  allocation->bytes = nullptr;
  allocation->written = {};
  return {};
}

Result<void> DeviceMemory::map_host(std::span<std::byte> range) {
  const auto begin = reinterpret_cast<std::uint64_t>(range.data());
  const auto after = host_.lower_bound(begin + range.size());
  const bool overlaps = after != host_.begin() && [&] {
    const Allocation& before = *allocations_[std::prev(after)->second];
    return before.address + before.size > begin;
  }();
  if (range.empty() || overlaps) {
    return invalid_argument(
        fmt::format("{} bytes of host memory at {:#x} are empty or mapped already", range.size(), begin));
  }
  auto allocation = std::make_unique<Allocation>();
  allocation->address = begin;
  allocation->size = range.size();
  allocation->bytes = range.data();
  allocation->is_host = true;
  allocation->index = static_cast<std::uint32_t>(allocations_.size());
  host_[begin] = allocation->index;
  allocations_.push_back(std::move(allocation));
  return {};
}

Result<void> DeviceMemory::unmap_host(const void* begin) {
  if (host_.erase(reinterpret_cast<std::uint64_t>(begin)) == 1) return {};
  return invalid_argument(fmt::format("{} is no host memory that was mapped", begin));
}

Allocation* DeviceMemory::find(std::uint64_t address) {
  if (address >= base_ && address < base_ + pages_.size() * kPage) {
    return allocations_[pages_[(address - base_) / kPage] - 1].get();
  }
  auto after = host_.upper_bound(address);
  if (after == host_.begin()) return nullptr;
  Allocation* allocation = allocations_[std::prev(after)->second].get();
  return address - allocation->address < allocation->size ? allocation : nullptr;
}

Result<Allocation*> DeviceMemory::live(std::uint64_t address, std::uint64_t count) const {
  auto* allocation = const_cast<DeviceMemory*>(this)->find(address);
  if (allocation != nullptr && !allocation->is_freed && allocation->contains(address, count)) return allocation;
  return invalid_argument(fmt::format("{} bytes at {:#x} are not inside one allocation", count, address));
}

Result<void> DeviceMemory::copy_in(std::uint64_t address, std::span<const std::byte> bytes) {
  if (bytes.empty()) return {};
  TROUPE_ASSIGN(Allocation * allocation, live(address, bytes.size()));
  std::memcpy(allocation->bytes + (address - allocation->address), bytes.data(), bytes.size());
  allocation->mark_written(address - allocation->address, bytes.size());
  return {};
}

Result<void> DeviceMemory::copy_out(std::uint64_t address, std::span<std::byte> bytes) const {
  if (bytes.empty()) return {};
  TROUPE_ASSIGN(const Allocation* allocation, live(address, bytes.size()));
  std::memcpy(bytes.data(), allocation->bytes + (address - allocation->address), bytes.size());
  return {};
}

Result<void> DeviceMemory::fill(std::uint64_t address, std::byte value, std::uint64_t count) {
  if (count == 0) return {};
  TROUPE_ASSIGN(Allocation * allocation, live(address, count));
  std::memset(allocation->bytes + (address - allocation->address), static_cast<int>(value), count);
  allocation->mark_written(address - allocation->address, count);
  return {};
}

Result<bool> DeviceMemory::is_written(std::uint64_t address, std::uint64_t count) const {
  TROUPE_ASSIGN(const Allocation* allocation, live(address, count));
  return allocation->is_written(address - allocation->address, count);
}

void DeviceMemory::make_constant(std::uint64_t address) {
  Allocation* allocation = find(address);
  TROUPE_CHECK(allocation != nullptr, "only what was allocated is made constant");
  allocation->is_constant = true;
}

}  // namespace troupe::device::ptx
