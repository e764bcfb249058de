#include "workers/report/compare/seed_statistics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace troupe::workers {
namespace {

TEST(InterquartileMeanTest, LeavesOutAQuarterAtEachEndRoundedDown) {
  EXPECT_DOUBLE_EQ(interquartile_mean(std::vector<double>{8, 1, 7, 2, 6, 3, 5, 4}), 4.5);
  EXPECT_DOUBLE_EQ(interquartile_mean(std::vector<double>{1000, 1, 2, 3, -1000}), 2) << "one of five at each end";
  EXPECT_DOUBLE_EQ(interquartile_mean(std::vector<double>{1, 2, 6}), 3) << "none of three";
  EXPECT_DOUBLE_EQ(interquartile_mean(std::vector<double>{7}), 7);
  EXPECT_TRUE(std::isnan(interquartile_mean(std::vector<double>{})));
}

// Over all 5^5 draws the 2.5 % quantile of the mean of the middle three is 4/3, the 97.5 % quantile 40/3; the next
// values that the mean can have are 5/3 and 12.
TEST(BootstrapIntervalTest, ComesCloseToTheIntervalOverAllDraws) {
  const std::vector<double> values{16, 1, 8, 2, 4};
  const Interval interval = bootstrap_interval(values);
  EXPECT_GE(interval.low, 4.0 / 3 - 1e-9);
  EXPECT_LE(interval.low, 5.0 / 3 + 1e-9);
  EXPECT_GE(interval.high, 12 - 1e-9);
  EXPECT_LE(interval.high, 40.0 / 3 + 1e-9);
  const Interval again = bootstrap_interval(values);
  EXPECT_EQ(interval.low, again.low) << "the same draws every time";
  EXPECT_EQ(interval.high, again.high);
}

TEST(BootstrapIntervalTest, OneValueSaysNothingOfItsSpreadAndEqualOnesHaveNone) {
  EXPECT_TRUE(std::isinf(bootstrap_interval(std::vector<double>{3}).low));
  EXPECT_TRUE(std::isinf(bootstrap_interval(std::vector<double>{3}).high));
  EXPECT_EQ(bootstrap_interval(std::vector<double>{3, 3, 3}).low, 3);
  EXPECT_EQ(bootstrap_interval(std::vector<double>{3, 3, 3}).high, 3);
}

}  // namespace
}  // namespace troupe::workers
