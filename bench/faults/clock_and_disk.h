#pragma once

#include <cstdint>

namespace troupe::bench {

/// The file that TROUPE_LAB_CONTROL names, mapped by the writer and by every program that clock_and_disk is preloaded
/// into. Each field is read on its own.
struct ClockAndDisk {
  std::int64_t wall_seconds = 0;       ///< added to the wall clock
  std::int64_t sync_milliseconds = 0;  ///< what every fsync and fdatasync waits first
};

}  // namespace troupe::bench
