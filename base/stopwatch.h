#pragma once

#include "base/seconds.h"

namespace troupe::base {

/// Seconds since a time of the same clock. Pure but for reading the clock; any thread.
template <class Clock, class Duration>
double seconds_since(std::chrono::time_point<Clock, Duration> begin) {
  return Seconds(Clock::now() - begin).count();
}

/// Adds the seconds of its life to a sum, which outlives it. Reads the steady clock twice; one thread.
class ScopedSeconds {
 public:
  [[nodiscard]] explicit ScopedSeconds(double& sum) : sum_(sum) {}
  ~ScopedSeconds() { sum_ += seconds_since(begin_); }
  ScopedSeconds(const ScopedSeconds&) = delete;
  ScopedSeconds& operator=(const ScopedSeconds&) = delete;

 private:
  double& sum_;
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

}  // namespace troupe::base
