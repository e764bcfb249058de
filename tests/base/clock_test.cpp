#include "base/clock.h"

#include <gtest/gtest.h>

#include <ctime>

namespace troupe::base {
namespace {

using namespace std::chrono_literals;

TEST(ClockTest, FakeTimePassesOnlyWhenToldTo) {
  FakeClock clock(100.0);
  const auto start = clock.now();
  EXPECT_EQ(clock.now(), start);
  EXPECT_EQ(clock.wall_seconds(), 100.0);
  clock.advance(1500ms);
  EXPECT_EQ(clock.now() - start, 1500ms);
  EXPECT_DOUBLE_EQ(clock.wall_seconds(), 101.5);
}

TEST(ClockTest, FakeTimeStartsFarEnoughFromZeroForTimeouts) {
  EXPECT_GT((FakeClock().now() - 24h).time_since_epoch(), 0s);
}

TEST(ClockTest, SystemTimeIsMonotonicAndAgreesWithTheMachine) {
  const auto first = system_clock().now();
  EXPECT_LE(first, system_clock().now());
  EXPECT_NEAR(system_clock().wall_seconds(), static_cast<double>(std::time(nullptr)), 60.0);
}

}  // namespace
}  // namespace troupe::base
