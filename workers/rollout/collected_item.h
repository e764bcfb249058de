#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace troupe {

/// One trajectory item (trajectory_layout.h) as a learner rank has copied it out of its feed.
struct CollectedItem {
  std::int64_t position = 0;
  std::uint64_t xxh3 = 0;
  std::vector<std::byte> bytes;
};

}  // namespace troupe
