#include "workers/controller/membership.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "workers/controller/join_rules.h"

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

/// What has changed, as "rank presence".
std::vector<std::string> judged(Membership& membership, Membership::TimePoint now) {
  std::vector<std::string> changes;
  for (const auto& change : membership.judge(now))
    changes.push_back(fmt::format("{} {}", change.rank, enum_name(change.presence)));
  return changes;
}

TEST_F(MembershipTest, GivesRanksInOrderAndKeepsThemOverARejoin) {
  EXPECT_EQ(membership.join(join("a"), "a#1", now)->rank, 1);
  EXPECT_EQ(membership.join(join("b"), "b#1", now)->rank, 2);
  EXPECT_EQ(membership.join(join("a", 2), "a#2", now)->rank, 1);
  EXPECT_EQ(membership.cluster().nodes.size(), 3u);
}

TEST_F(MembershipTest, RefusesTheControllersOwnName) { EXPECT_FALSE(membership.join(join("local"), "local#1", now)); }

TEST_F(MembershipTest, ANameBelongsToTheKeyThatJoinedWithItFirst) {
  Join first = join("a"), other = join("a", 2);
  first.key = "first key";
  other.key = "other key";
  EXPECT_EQ(membership.join(first, "a#1", now)->rank, 1);
  EXPECT_THAT(membership.join(other, "a#2", now).error().message(), HasSubstr("belongs to another key"));
  membership.judge(now + 11s);
  EXPECT_FALSE(membership.join(other, "a#2", now + 12s)) << "a lost node keeps its name";
  EXPECT_EQ(membership.join(first, "a#1", now + 12s)->rank, 1);
}

TEST_F(MembershipTest, AnotherBuildIsRefusedWithBothInWords) {
  Join older = join("a");
  older.version = "0.0.9";
  older.protocol = kJoinProtocol - 1;
  EXPECT_THAT(
      membership.join(older, "a#1", now).error().message(),
      AllOf(HasSubstr("troupe 0.0.9 (protocol 0"), HasSubstr("the controller troupe"), HasSubstr("protocol 1")));
  Join other_samples = join("a");
  ++other_samples.sample_revision;
  EXPECT_THAT(membership.join(other_samples, "a#1", now).error().message(), HasSubstr("different bytes of one sample"));
  Join ancient;  // of before there were such numbers
  ancient.name = "a";
  ancient.cpus = 8;
  EXPECT_THAT(membership.join(ancient, "a#1", now).error().message(), HasSubstr("troupe of an unknown version"));
}

TEST_F(MembershipTest, ASilentNodeIsSuspectThenLostOnceAndItsOwnNever) {
  membership.join(join("a"), "a#1", now).value();
  EXPECT_THAT(judged(membership, now + 3s), IsEmpty());
  EXPECT_THAT(judged(membership, now + 4s), ElementsAre("1 suspect"));
  EXPECT_THAT(judged(membership, now + 10s), IsEmpty());
  EXPECT_THAT(judged(membership, now + 11s), ElementsAre("1 lost"));
  EXPECT_THAT(judged(membership, now + 12s), IsEmpty());
  EXPECT_FALSE(membership.heard("a#1", now + 12s)) << "it must join again";
  const auto again = membership.join(join("a"), "a#1", now + 12s);
  EXPECT_TRUE(again->is_news);
  EXPECT_EQ(again->replaced, "");
  EXPECT_TRUE(membership.heard("a#1", now + 12s));
}

TEST_F(MembershipTest, ASignOfLifeRenewsTheLeaseAndEndsTheSuspicion) {
  membership.join(join("a"), "a#1", now).value();
  EXPECT_THAT(judged(membership, now + 9s), ElementsAre("1 suspect"));
  EXPECT_TRUE(membership.heard("a#1", now + 9s));
  EXPECT_THAT(judged(membership, now + 9s), ElementsAre("1 alive"));
  EXPECT_THAT(judged(membership, now + 12s), IsEmpty());
}

TEST_F(MembershipTest, AShortLeaseSuspectsAtItsHalf) {
  Membership hasty({.name = "local", .cpus = 1, .memory_bytes = 1}, 2s);
  hasty.join(join("a"), "a#1", now).value();
  EXPECT_THAT(judged(hasty, now + 1500ms), ElementsAre("1 suspect"));
  EXPECT_THAT(judged(hasty, now + 2500ms), ElementsAre("1 lost"));
}

TEST_F(MembershipTest, ARequestThatComesAgainIsNoNews) {
  EXPECT_TRUE(membership.join(join("a"), "a#1", now)->is_news);
  EXPECT_FALSE(membership.join(join("a"), "a#1", now + 1s)->is_news);
}

TEST_F(MembershipTest, TheNewerProcessOfANameTakesItAndTheOlderIsNoLongerHeard) {
  membership.join(join("a", 1), "a#1", now).value();
  const auto newer = membership.join(join("a", 2), "a#2", now + 1s);
  EXPECT_TRUE(newer->is_news);
  EXPECT_EQ(newer->replaced, "a#1");
  EXPECT_FALSE(newer->was_lost);
  EXPECT_FALSE(membership.heard("a#1", now + 2s));
  EXPECT_TRUE(membership.heard("a#2", now + 2s));
  const auto older = membership.join(join("a", 1), "a#1", now + 3s);
  ASSERT_FALSE(older);
  EXPECT_THAT(older.error().message(), ::testing::HasSubstr("a newer process has joined as node 'a'"));
  EXPECT_EQ(membership.of_rank(1)->address, "a#2");
}

TEST_F(MembershipTest, ANodeThatWasLostIsNotLostAgainWhenItsNextProcessJoins) {
  membership.join(join("a", 1), "a#1", now).value();
  EXPECT_THAT(judged(membership, now + 11s), ElementsAre("1 lost"));
  const auto newer = membership.join(join("a", 2), "a#2", now + 12s);
  EXPECT_EQ(newer->replaced, "a#1");
  EXPECT_TRUE(newer->was_lost);
}

}  // namespace
}  // namespace troupe::workers
