#include "tests/device/ptx/global_shadow.h"

#include <algorithm>

namespace troupe::device::ptx {

std::vector<Touched> GlobalShadow::touched(DeviceMemory& memory) const {
  std::vector<Touched> all;
  for (std::uint32_t index = 0; index < cells_.size(); ++index) {
    const Cell* cells = cells_[index].get();
    if (cells == nullptr) continue;
    const Allocation& allocation = memory.at(index);
    Touched touched{.allocation = allocation.address, .allocation_bytes = allocation.size};
    const std::uint64_t bytes = std::uint64_t{1} << granule_, end = allocation.address + allocation.size;
    const auto add = [&](std::vector<Interval>& to, std::uint64_t i) {
      const std::uint64_t begin = allocation.address + i * bytes;
      if (!to.empty() && to.back().end == begin) {
        to.back().end = std::min(begin + bytes, end);
      } else {
        to.push_back({begin, std::min(begin + bytes, end)});
      }
    };
    for (std::uint64_t i = 0; i * bytes < allocation.size; ++i) {
      if (cells[i].reader != 0 || (cells[i].writer & kAtomic) != 0) add(touched.reads, i);
      if (cells[i].writer != 0) add(touched.writes, i);
    }
    all.push_back(std::move(touched));
  }
  return all;
}

}  // namespace troupe::device::ptx
