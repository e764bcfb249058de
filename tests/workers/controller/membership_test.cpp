#include "workers/controller/membership.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "workers/controller/run_statistics.h"

namespace troupe::workers {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

struct MembershipTest : ::testing::Test {
  Membership membership{{.name = "local", .cpus = 2, .memory_bytes = 1}, 10s};
  Membership::TimePoint now{1h};
  Join join(const std::string& name, std::uint64_t incarnation = 1) {
    return {.name = name,
            .incarnation = incarnation,
            .cpus = 8,
            .memory_bytes = 2,
            .host = name,
            .boot_id = "",
            .term_seen = 0};
  }
};

TEST_F(MembershipTest, GivesRanksInOrderAndKeepsThemOverARejoin) {
  EXPECT_EQ(membership.join(join("a"), "a", now).value(), 1);
  EXPECT_EQ(membership.join(join("b"), "b", now).value(), 2);
  EXPECT_EQ(membership.join(join("a", 2), "a", now).value(), 1);
  EXPECT_EQ(membership.cluster().nodes.size(), 3u);
}

TEST_F(MembershipTest, RefusesTheControllersOwnName) { EXPECT_FALSE(membership.join(join("local"), "local", now)); }

TEST_F(MembershipTest, ASilentNodeIsLostOnceAndItsOwnNever) {
  membership.join(join("a"), "a", now).value();
  EXPECT_THAT(membership.expire(now + 10s), IsEmpty());
  EXPECT_THAT(membership.expire(now + 11s), ElementsAre(1));
  EXPECT_THAT(membership.expire(now + 12s), IsEmpty());
  EXPECT_FALSE(membership.heard("a", now + 12s)) << "it must join again";
  EXPECT_TRUE(membership.heard("local", now + 12s));
}

TEST_F(MembershipTest, ASignOfLifeRenewsTheLease) {
  membership.join(join("a"), "a", now).value();
  EXPECT_TRUE(membership.heard("a", now + 9s));
  EXPECT_THAT(membership.expire(now + 15s), IsEmpty());
}

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
  EXPECT_EQ(s.curve("train/loss").size(), 1u);
}

TEST(RunStatisticsTest, ARunThatGoesOnKeepsTheCurvesAndNotTheTimesOfBefore) {
  RunStatistics s(8);
  s.go_on_from({{"train/loss", {{1, 5.0}, {2, 4.0}, {3, 9.0}}}, {"time/step", {{1, 60.0}, {2, 60.0}}}}, 2);
  s.add_step({.actor = "", .fence = 1, .step = 3, .metrics = {{"train/loss", 3.0}, {"time/step", 1.0}}});
  EXPECT_EQ(s.curve("train/loss").size(), 3u) << "step 3 is trained again";
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

}  // namespace
}  // namespace troupe::workers
