#include "tests/device/ptx/finding.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace troupe::device::ptx {

std::string Finding::to_string() const {
  std::string all =
      fmt::format("{}: {} ({}) block ({},{},{})", enum_name(kind), kernel, source, block[0], block[1], block[2]);
  if (!threads.empty()) all += fmt::format(" thread {}", fmt::join(threads, ","));
  if (address != 0) all += fmt::format(" address {:#x}", address);
  if (allocation != 0) all += fmt::format(" of the {} bytes at {:#x}", allocation_bytes, allocation);
  return all + fmt::format(": {}; {} times", text, times);
}

std::string to_string(std::span<const Finding> findings) {
  std::string all;
  for (const Finding& finding : findings) all += finding.to_string() + "\n";
  return all;
}

}  // namespace troupe::device::ptx
