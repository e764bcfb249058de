#include "workers/report/compare/group_curve.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/workers/report/compare/made_up_runs.h"

namespace troupe::workers {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(GroupCurveTest, OneSeedIsItsOwnCurveWithoutABand) {
  const GroupCurve curve =
      group_curve(made_up_group("train/loss", {{{1, 3.0}, {2, std::nan("")}, {3, 1.0}}}), "train/loss", false);
  EXPECT_THAT(curve.x, ElementsAre(1, 3));
  EXPECT_THAT(curve.middle, ElementsAre(3, 1));
  EXPECT_THAT(curve.low, IsEmpty());
}

TEST(GroupCurveTest, SeedsOfEqualStepsAreTakenThere) {
  const GroupCurve curve =
      group_curve(made_up_group("train/loss", {{{1, 3.0}, {2, 1.0}}, {{1, 5.0}, {2, 1.0}}}), "train/loss", false);
  EXPECT_THAT(curve.x, ElementsAre(1, 2));
  EXPECT_THAT(curve.middle, ElementsAre(4, 1));
  EXPECT_THAT(curve.low, ElementsAre(3, 1));
  EXPECT_THAT(curve.high, ElementsAre(5, 1));
}

// y = x and y = x + 2, recorded at other steps: in the middle the mean is x + 1, elsewhere the curve of the one seed.
TEST(GroupCurveTest, SeedsOfOtherStepsMeetAtTheEndsOfStretches) {
  std::map<std::int64_t, double> first, second;
  for (std::int64_t x = 0; x <= 1000; x += 5) first[x] = static_cast<double>(x);
  for (std::int64_t x = 500; x <= 2000; x += 7) second[x] = static_cast<double>(x) + 2;
  const GroupCurve curve = group_curve(made_up_group("train/loss", {first, second}), "train/loss", false);
  ASSERT_EQ(curve.x.size(), 100u);
  for (std::size_t i = 0; i < curve.x.size(); ++i) {
    const double x = curve.x[i], expected = x <= 500 ? x : x <= 1000 ? x + 1 : x + 2;
    EXPECT_NEAR(curve.middle[i], expected, 20) << x << ": stretches are 20 long";
    const bool has_both = x > 500 && x <= 1000, has_band = curve.low[i] < curve.high[i];
    const bool is_near_an_end = (x > 500 && x < 520) || (x > 1000 && x < 1020);
    EXPECT_TRUE(is_near_an_end || has_band == has_both) << x;
  }
}

TEST(GroupCurveTest, AMetricThatIsNotThereIsNoCurve) {
  EXPECT_THAT(group_curve(made_up_group("train/loss", {{{1, 3.0}}}), "eval/loss", false).x, IsEmpty());
}

TEST(GroupCurveTest, EnvironmentStepsAreTheAxisWhereTheyAreCounted) {
  RunGroup group = made_up_group("env/return", {{{1, 10.0}, {2, 20.0}}});
  EXPECT_THAT(group_curve(group, "env/return", true).x, ElementsAre(1, 2)) << "they are not";
  group.runs[0].metrics.curves[kEnvSteps] = {{1, 512.0}, {2, 1024.0}};
  EXPECT_THAT(group_curve(group, "env/return", true).x, ElementsAre(512, 1024));
}

}  // namespace
}  // namespace troupe::workers
