#include "base/page/ticks.h"

#include <gtest/gtest.h>

namespace troupe::base {
namespace {

TEST(TicksTest, TicksAreRoundAndInsideTheRange) {
  EXPECT_EQ(linear_ticks(0, 400, 8), (std::vector<double>{0, 50, 100, 150, 200, 250, 300, 350, 400}));
  EXPECT_EQ(linear_ticks(-1, 1, 4), (std::vector<double>{-1, -0.5, 0, 0.5, 1}));
  EXPECT_EQ(log_ticks(0.001, 10).size(), 5u);
  EXPECT_GE(log_ticks(0.3, 0.9).size(), 2u);
}

TEST(TicksTest, AScaleCanBeReadFromAtLeastTwoTicks) {
  for (double high = 1.01; high < 10; high += 0.01) EXPECT_GE(linear_ticks(0.99, high, 3).size(), 2U) << high;
}

TEST(TicksTest, NoTickLiesBetweenTwoSteps) {
  EXPECT_EQ(linear_ticks(1, 3, 8, 1), (std::vector<double>{1, 2, 3}));
  EXPECT_EQ(linear_ticks(2.5, 3.5, 8, 1), (std::vector<double>{3}));
}

TEST(TicksTest, ManyDecadesAreThinned) {
  EXPECT_EQ(tick_texts(log_ticks(0.5, 2e36)), (std::vector<std::string>{"1", "1e10", "1e20", "1e30"}));
  EXPECT_EQ(tick_texts(log_ticks(0.05, 2e6)), (std::vector<std::string>{"1", "100", "10k", "1M"}));
  for (double high = 1.5; high < 1e60; high *= 3) {
    EXPECT_LE(log_ticks(1, high).size(), 7U) << high;
    EXPECT_GE(log_ticks(1, high).size(), 2U) << high;
  }
}

TEST(TicksTest, NeighboursAreToldApartInOneUnit) {
  using Texts = std::vector<std::string>;
  EXPECT_EQ(tick_texts({0.4, 0.45, 0.5}), (Texts{"0.40", "0.45", "0.50"}));
  EXPECT_EQ(tick_texts({500, 1000, 1500}), (Texts{"500", "1,000", "1,500"}));
  EXPECT_EQ(tick_texts({-100'000, 0, 100'000}), (Texts{"-100k", "0", "100k"}));
  EXPECT_EQ(tick_texts({5e6, 1e7, 1.5e7}), (Texts{"5M", "10M", "15M"}));
  EXPECT_EQ(tick_texts({1e7, 1.005e7, 1.01e7}), (Texts{"10.00M", "10.05M", "10.10M"}));
  EXPECT_EQ(tick_texts({48'210, 48'215}), (Texts{"48,210", "48,215"}));
  EXPECT_EQ(tick_texts({0, 5e22, 1e23}), (Texts{"0", "5e22", "1.0e23"}));
  EXPECT_EQ(tick_texts({2e-5, 4e-5}), (Texts{"2e-5", "4e-5"}));
  EXPECT_EQ(tick_texts({0.1, 0.2, 0.5, 1, 2}), (Texts{"0.1", "0.2", "0.5", "1", "2"}));
  EXPECT_EQ(tick_texts({12'345}), (Texts{"12,345"}));
}

TEST(TicksTest, TextsOfANarrowRangeStayShort) {
  for (const double size : {1e-2, 1.0, 77.0, 123'456.0, 8.9e7}) {
    for (const std::string& text : tick_texts(linear_ticks(size, size + least_span(size), 5)))
      EXPECT_LE(text.size(), 8U) << text;
  }
}

}  // namespace
}  // namespace troupe::base
