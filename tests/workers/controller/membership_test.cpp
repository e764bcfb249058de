#include "workers/controller/membership.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

}  // namespace
}  // namespace troupe::workers
