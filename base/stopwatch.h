#pragma once

#include <chrono>

#include "base/namespaces.h"

namespace troupe::base {

/// Seconds since a time of the same clock. Pure but for reading the clock; any thread.
template <class Clock, class Duration>
double seconds_since(std::chrono::time_point<Clock, Duration> begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

}  // namespace troupe::base
