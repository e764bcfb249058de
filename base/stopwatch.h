#pragma once

#include "base/seconds.h"

namespace troupe::base {

/// Seconds since a time of the same clock. Pure but for reading the clock; any thread.
template <class Clock, class Duration>
double seconds_since(std::chrono::time_point<Clock, Duration> begin) {
  return Seconds(Clock::now() - begin).count();
}

}  // namespace troupe::base
