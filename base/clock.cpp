#include "base/clock.h"

#include "base/seconds.h"

namespace troupe::base {

namespace {
// FakeClock's origin: far from zero, so that subtracting a timeout stays positive.
constexpr std::chrono::hours kFakeStart{1000};
}  // namespace

std::chrono::steady_clock::time_point SystemClock::now() const { return std::chrono::steady_clock::now(); }

double SystemClock::wall_seconds() const {
  return Seconds(std::chrono::system_clock::now().time_since_epoch()).count();
}

const Clock& system_clock() {
  static const SystemClock clock;
  return clock;
}

FakeClock::FakeClock(double wall_start) : wall_start_(wall_start) {}

std::chrono::steady_clock::time_point FakeClock::now() const {
  const auto elapsed = std::chrono::nanoseconds(elapsed_ns_.load()) + kFakeStart;
  return std::chrono::steady_clock::time_point(
      std::chrono::duration_cast<std::chrono::steady_clock::duration>(elapsed));
}

double FakeClock::wall_seconds() const { return wall_start_ + static_cast<double>(elapsed_ns_.load()) * 1e-9; }

void FakeClock::advance(std::chrono::nanoseconds by) { elapsed_ns_ += by.count(); }

}  // namespace troupe::base
