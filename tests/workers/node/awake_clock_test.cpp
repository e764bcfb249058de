#include "workers/node/awake_clock.h"

#include <gtest/gtest.h>

namespace troupe::workers {
namespace {

using namespace std::chrono_literals;

TEST(AwakeClockTest, AGapCountsAsNoTime) {
  AwakeClock clock;
  const AwakeClock::TimePoint begin{1h};
  EXPECT_EQ(clock.at(begin), begin);
  EXPECT_EQ(clock.at(begin + 2s), begin + 2s) << "a busy moment is no gap";
  EXPECT_EQ(clock.at(begin + 1min), begin + 2s);
  EXPECT_EQ(clock.at(begin + 1min + 50ms), begin + 2s + 50ms);
}

}  // namespace
}  // namespace troupe::workers
