#pragma once

#include <sys/resource.h>

#include <chrono>
#include <cstdint>

#include "base/stopwatch.h"

namespace troupe::bench {

/// What a measured stretch of stepping cost this process.
struct StepRate {
  std::int64_t steps = 0;  ///< control steps of all environments
  double cpu_seconds = 0;  ///< of the whole process, user + system
  double wall_seconds = 0;
  double per_cpu_second() const { return static_cast<double>(steps) / cpu_seconds; }
  double per_second() const { return static_cast<double>(steps) / wall_seconds; }
};

/// Measures from its making to rate().
class StepClock {
 public:
  StepClock() : begin_(std::chrono::steady_clock::now()), cpu_(cpu_now()) {}
  StepRate rate(std::int64_t steps) const { return {steps, cpu_now() - cpu_, seconds_since(begin_)}; }

 private:
  static double cpu_now() {
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    const auto seconds = [](const timeval& t) {
      return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
    };
    return seconds(usage.ru_utime) + seconds(usage.ru_stime);
  }
  std::chrono::steady_clock::time_point begin_;
  double cpu_;
};

}  // namespace troupe::bench
