#pragma once

#include <chrono>

#include "base/namespaces.h"

namespace troupe::base {

/// Seconds since a time of the same clock. Pure but for reading the clock; any thread.
template <class Clock, class Duration>
double seconds_since(std::chrono::time_point<Clock, Duration> begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// Counts wall time from its making, or from the last restart(), on the monotonic clock. One thread at a time.
class Stopwatch {
 public:
  /// Since the beginning, in seconds.
  double seconds() const { return seconds_since(begin_); }
  /// The same, and begins anew.
  double restart() {
    const double passed = seconds();
    begin_ = std::chrono::steady_clock::now();
    return passed;
  }

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

}  // namespace troupe::base
