#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

#include "tests/device/ptx/device_memory.h"

namespace troupe::device::ptx {

/// Merged ranges of device addresses, ascending: [begin, end).
struct Interval {
  std::uint64_t begin = 0, end = 0;
  bool operator==(const Interval&) const = default;
};

/// What a launch touched of one allocation. A place that only atomics touched is both read and written.
struct Touched {
  std::uint64_t allocation = 0, allocation_bytes = 0;
  std::vector<Interval> reads = {}, writes = {};
};

/// Who read and who wrote each granule of device memory in one launch, by block. Not thread-safe.
class GlobalShadow {
 public:
  /// Of one granule: number of the last block that wrote, and of the block that read, both from 1.
  struct Cell {
    std::uint32_t writer = 0, reader = 0;
  };
  static constexpr std::uint32_t kAtomic = 0x80000000, kReadOnly = 0x80000000, kBlock = 0x3FFFFFFF, kSeveral = kBlock;

  /// What goes wrong with an access, as bits.
  static constexpr std::uint32_t kRace = 1, kReadOnlyWritten = 2;

  /// `granule`: bytes of a granule as a power of two, at most the smallest access.
  explicit GlobalShadow(std::uint32_t granule) : granule_(granule) {}

  std::uint32_t granule() const { return granule_; }
  /// The cells of an allocation; zeros cost nothing until they are touched.
  Cell* cells(const Allocation& allocation) {
    if (allocation.index >= cells_.size()) cells_.resize(allocation.index + 1);
    auto& cells = cells_[allocation.index];
    if (!cells) cells.reset(static_cast<Cell*>(std::calloc((allocation.size >> granule_) + 1, sizeof(Cell))));
    return cells.get();
  }

  /// `block` counts from 1 and is below 2^30.
  static std::uint32_t read(Cell& cell, std::uint32_t block, bool read_only) {
    const std::uint32_t writer = cell.writer & kBlock, reader = cell.reader & kBlock;
    std::uint32_t wrong = writer != 0 && writer != block ? kRace : 0;
    if (read_only && writer != 0) wrong |= kReadOnlyWritten;
    const std::uint32_t readers = reader == 0 || reader == block ? block : kSeveral;
    cell.reader = readers | (cell.reader & kReadOnly) | (read_only ? kReadOnly : 0);
    return wrong;
  }
  static std::uint32_t write(Cell& cell, std::uint32_t block, bool atomic) {
    const std::uint32_t writer = cell.writer & kBlock, reader = cell.reader & kBlock;
    const bool both_atomic = atomic && (cell.writer & kAtomic) != 0;
    std::uint32_t wrong =
        (writer != 0 && writer != block && !both_atomic) || (reader != 0 && reader != block) ? kRace : 0;
    if ((cell.reader & kReadOnly) != 0) wrong |= kReadOnlyWritten;
    cell.writer = block | (atomic && (writer == 0 || (cell.writer & kAtomic) != 0) ? kAtomic : 0);
    return wrong;
  }

  /// Of every allocation that was touched, in the order of allocation.
  std::vector<Touched> touched(DeviceMemory& memory) const;

 private:
  struct Free {
    void operator()(Cell* cells) const { std::free(cells); }
  };
  std::uint32_t granule_;
  std::vector<std::unique_ptr<Cell, Free>> cells_;
};

}  // namespace troupe::device::ptx
