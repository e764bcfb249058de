#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "base/namespaces.h"

namespace troupe::base {

/// Time as an argument, so that tests decide when it passes. Safe from any thread.
class Clock {
 public:
  /// Only durations of now() mean anything; wall_seconds() may jump when the machine's time is set.
  /// A Clock outlives whatever it was handed to.
  virtual ~Clock() = default;
  /// Monotonic; for deadlines and durations.
  virtual std::chrono::steady_clock::time_point now() const = 0;
  /// Seconds since 1970-01-01 UTC; for records that people and other programs read.
  virtual double wall_seconds() const = 0;
};

/// The machine's clocks.
/// std::chrono's steady_clock and system_clock.
class SystemClock final : public Clock {
 public:
  std::chrono::steady_clock::time_point now() const override;
  double wall_seconds() const override;
};

/// The process's one SystemClock.
const Clock& system_clock();

/// Stands still until advance() is called.
class FakeClock final : public Clock {
 public:
  /// `wall_start`: seconds since 1970 at which the clock stands; the monotonic clock starts at its epoch.
  explicit FakeClock(double wall_start = 1.8e9);
  std::chrono::steady_clock::time_point now() const override;
  double wall_seconds() const override;
  /// Moves both clocks. Any thread; nobody is woken by it.
  void advance(std::chrono::nanoseconds by);

 private:
  double wall_start_;
  /// Nanoseconds advanced since the start.
  std::atomic<std::int64_t> elapsed_ns_{0};
};

}  // namespace troupe::base
