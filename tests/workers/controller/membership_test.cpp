#include "workers/controller/membership.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "workers/controller/join_rules.h"
#include "workers/controller/run_statistics.h"

namespace troupe::workers {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct MembershipTest : ::testing::Test {
  Membership membership{{.name = "local", .cpus = 2, .memory_bytes = 1}, 10s};
  Membership::TimePoint now{1h};
  Join join(const std::string& name, std::uint64_t incarnation = 1) {
    Join join{.name = name,
              .incarnation = incarnation,
              .cpus = 8,
              .memory_bytes = 2,
              .host = name,
              .boot_id = "",
              .term_seen = 0};
    describe_build(join);
    return join;
  }
};

TEST_F(MembershipTest, GivesRanksInOrderAndKeepsThemOverARejoin) {
  EXPECT_EQ(membership.join(join("a"), "a", now).value(), 1);
  EXPECT_EQ(membership.join(join("b"), "b", now).value(), 2);
  EXPECT_EQ(membership.join(join("a", 2), "a", now).value(), 1);
  EXPECT_EQ(membership.cluster().nodes.size(), 3u);
}

TEST_F(MembershipTest, RefusesTheControllersOwnName) { EXPECT_FALSE(membership.join(join("local"), "local", now)); }

TEST_F(MembershipTest, ANameBelongsToTheKeyThatJoinedWithItFirst) {
  Join first = join("a"), other = join("a", 2);
  first.key = "first key";
  other.key = "other key";
  EXPECT_EQ(membership.join(first, "a", now).value(), 1);
  EXPECT_THAT(membership.join(other, "a", now).error().message(), HasSubstr("belongs to another key"));
  membership.expire(now + 11s);
  EXPECT_FALSE(membership.join(other, "a", now + 12s)) << "a lost node keeps its name";
  EXPECT_EQ(membership.join(first, "a", now + 12s).value(), 1);
}

TEST_F(MembershipTest, AnotherBuildIsRefusedWithBothInWords) {
  Join older = join("a");
  older.version = "0.0.9";
  older.protocol = kJoinProtocol - 1;
  EXPECT_THAT(
      membership.join(older, "a", now).error().message(),
      AllOf(HasSubstr("troupe 0.0.9 (protocol 0"), HasSubstr("the controller troupe"), HasSubstr("protocol 1")));
  Join other_samples = join("a");
  ++other_samples.sample_revision;
  EXPECT_THAT(membership.join(other_samples, "a", now).error().message(), HasSubstr("different bytes of one sample"));
  Join ancient;  // of before there were such numbers
  ancient.name = "a";
  ancient.cpus = 8;
  EXPECT_THAT(membership.join(ancient, "a", now).error().message(), HasSubstr("troupe of an unknown version"));
}

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
