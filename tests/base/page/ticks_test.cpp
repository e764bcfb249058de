#include "base/page/ticks.h"

#include <gtest/gtest.h>

namespace troupe::base {
namespace {

TEST(TicksTest, TicksAreRoundAndInsideTheRange) {
  EXPECT_EQ(linear_ticks(0, 400, 8), (std::vector<double>{0, 50, 100, 150, 200, 250, 300, 350, 400}));
  EXPECT_EQ(linear_ticks(-1, 1, 4), (std::vector<double>{-1, -0.5, 0, 0.5, 1}));
  EXPECT_EQ(log_ticks(0.001, 10).size(), 5u);
  EXPECT_GE(log_ticks(0.3, 0.9).size(), 2u);
  EXPECT_EQ(tick_text(0.25, 0.05), "0.25");
  EXPECT_EQ(tick_text(1500, 500), "1,500");
  EXPECT_EQ(tick_text(0, 1), "0");
  EXPECT_EQ(tick_text(2e-5, 2e-5), "2.0e-05");
}

}  // namespace
}  // namespace troupe::base
