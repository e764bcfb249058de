#include "workers/controller/run_statistics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace troupe::workers {
namespace {

TEST(RunStatisticsTest, StallIsAShareOfStepTimeAndRatesAreSamplesOverTime) {
  RunStatistics s(8);
  s.add_step({.actor = "",
              .fence = 1,
              .step = 1,
              .metrics = {{"train/loss", 2.0}, {"time/step", 1.0}, {"time/stall", 0.5}, {"train/applied", 1}}});
  s.add_step({.actor = "",
              .fence = 1,
              .step = 2,
              .metrics = {{"train/loss", 1.0}, {"time/step", 3.0}, {"time/stall", 0.5}, {"train/applied", 1}}});
  EXPECT_DOUBLE_EQ(s.stall_percent(), 25.0);
  EXPECT_DOUBLE_EQ(s.samples_per_second(), 4.0);
  EXPECT_DOUBLE_EQ(s.first_mean(1), 2.0);
  EXPECT_DOUBLE_EQ(s.last_mean(10), 1.5);
  EXPECT_EQ(s.best().step, 2);
}

TEST(RunStatisticsTest, ARollbackTakesTheStepsOutOfTheCurves) {
  RunStatistics s(8);
  for (std::int64_t step = 1; step <= 3; ++step) {
    s.add_step({.actor = "", .fence = 1, .step = step, .metrics = {{"train/loss", 1.0}, {"train/applied", 1}}});
  }
  s.roll_back(1);
  EXPECT_EQ(s.curve("train/loss").points().size(), 1u);
}

TEST(RunStatisticsTest, ARunThatGoesOnKeepsTheCurvesAndNotTheTimesOfBefore) {
  RunStatistics s(8);
  s.go_on_from({{"train/loss", {{1, 5.0}, {2, 4.0}, {3, 9.0}}}, {"time/step", {{1, 60.0}, {2, 60.0}}}}, 2);
  s.add_step({.actor = "", .fence = 1, .step = 3, .metrics = {{"train/loss", 3.0}, {"time/step", 1.0}}});
  EXPECT_EQ(s.curve("train/loss").points().size(), 3u) << "step 3 is trained again";
  EXPECT_DOUBLE_EQ(s.first_mean(1), 5.0);
  EXPECT_DOUBLE_EQ(s.last_mean(1), 3.0);
  EXPECT_DOUBLE_EQ(s.samples_per_second(), 8.0);
  EXPECT_EQ(s.steps(), 1);
}

TEST(RunStatisticsTest, LossesThatAreNotNumbersAreLeftOutOfMeansAndBest) {
  RunStatistics s(8);
  std::int64_t step = 0;
  for (const double loss : {std::nan(""), 4.0, 2.0, std::nan("")})
    s.add_step({.actor = "", .fence = 1, .step = ++step, .metrics = {{"train/loss", loss}}});
  EXPECT_DOUBLE_EQ(s.first_mean(1), 4.0);
  EXPECT_DOUBLE_EQ(s.last_mean(10), 3.0);
  EXPECT_EQ(s.best().step, 3);
}

TEST(RunStatisticsTest, AMillionStepsTakeNoMoreRoomThanTenThousandPointsACurve) {
  RunStatistics s(8);
  for (std::int64_t step = 1; step <= 1'000'000; ++step) {
    // the lowest loss lies at a step that no even thinning keeps
    const double loss = step == 777'777 ? 0.5 : 1.0 + 1.0 / static_cast<double>(step);
    s.add_step({.actor = "", .fence = 1, .step = step, .metrics = {{"train/loss", loss}, {"time/step", 0.01}}});
  }
  const RunCurve& losses = s.curve("train/loss");
  EXPECT_LE(losses.points().size(), RunCurve::kMostPoints);
  EXPECT_GE(losses.points().size(), RunCurve::kMostPoints / 2 - 1);
  EXPECT_EQ(losses.points().front().step, 1);
  EXPECT_EQ(losses.points().back().step, 1'000'000);
  EXPECT_EQ(s.best().step, 777'777);
  EXPECT_EQ(losses.recent().size(), RunCurve::kRecent);
  EXPECT_EQ(s.steps(), 1'000'000);
  EXPECT_NEAR(s.samples_per_second(), 800, 1e-3);
  EXPECT_NEAR(s.samples_per_second_quantile(0.5), 800, 8);
  const std::int64_t stride = losses.points()[1].step - losses.points()[0].step;
  for (std::size_t i = 1; i + 1 < losses.points().size(); ++i)
    ASSERT_EQ(losses.points()[i].step - losses.points()[i - 1].step, stride) << i;
}

TEST(RunStatisticsTest, QuantilesAreWithinOnePerCentOfTheValueOfThatRank) {
  RunStatistics s(1);
  for (std::int64_t step = 1; step <= 1000; ++step)
    s.add_step({.actor = "", .fence = 1, .step = step, .metrics = {{"time/step", 1.0 / static_cast<double>(step)}}});
  for (const double q : {0.0, 0.05, 0.5, 0.95, 1.0}) {
    const double exact = 1.0 + std::round(q * 999);
    EXPECT_NEAR(s.samples_per_second_quantile(q), exact, 0.01 * exact) << q;
  }
}

TEST(RunCurveTest, ARollbackOfAThinnedCurveLeavesWhatWasThereBefore) {
  RunCurve curve;
  for (std::int64_t step = 1; step <= 50'000; ++step) curve.add({step, static_cast<double>(step % 1000)});
  curve.add({50'001, -5});
  curve.add({50'002, std::numeric_limits<double>::infinity()});
  EXPECT_EQ(curve.not_finite(), 1);
  EXPECT_EQ(curve.lowest()->step, 50'001);
  curve.roll_back(49'995);
  EXPECT_EQ(curve.points().back().step, 49'995);
  EXPECT_EQ(curve.recent().back().step, 49'995);
  EXPECT_EQ(curve.lowest()->step, 1000);
  EXPECT_EQ(curve.highest()->value, 999);
  EXPECT_EQ(curve.not_finite(), 0);
  for (std::int64_t step = 49'996; step <= 120'000; ++step) curve.add({step, 1});
  EXPECT_LE(curve.points().size(), RunCurve::kMostPoints);
  EXPECT_EQ(curve.points().back().step, 120'000);
  curve.roll_back(0);
  EXPECT_TRUE(curve.points().empty());
  EXPECT_FALSE(curve.lowest());
}

}  // namespace
}  // namespace troupe::workers
