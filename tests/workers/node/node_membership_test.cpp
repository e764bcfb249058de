#include "workers/node/node_membership.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe::workers {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;

const Joined kJoined{
    .term = 1, .node_rank = 1, .lease_ms = 10'000, .config = "", .run_dir = "", .plan = "", .orphan_ms = 60'000};

struct NodeMembershipTest : ::testing::Test {
  /// Lets time pass in steps of 50 ms, as a controller that answers beats (or does not) would see it.
  void pass(std::chrono::milliseconds time, bool is_answered) {
    for (const auto until = now + time; now < until; now += 50ms) {
      const auto message = node.tick(running, 0, now);
      if (!message) continue;
      if (const auto* beat = std::get_if<Heartbeat>(&*message)) {
        ++beats;
        if (is_answered) node.on(HeartbeatAck{.sequence = beat->sequence}, now);
      } else {
        requests.push_back(std::get<Join>(*message));
      }
    }
  }
  void join() {
    pass(1s, false);
    node.on(kJoined, now);
    requests.clear();
  }
  NodeMembership::TimePoint now{1h};
  NodeMembership node{Join{.name = "a", .incarnation = 7, .cpus = 1, .memory_bytes = 1, .host = "", .boot_id = ""}};
  std::vector<std::string> running;
  int beats = 0;
  std::vector<Join> requests;
};

TEST_F(NodeMembershipTest, AsksTwiceASecondUntilItIsAnswered) {
  pass(10s, false);
  EXPECT_EQ(requests.size(), 20u);
  EXPECT_EQ(node.phase(), MembershipPhase::asking);
  node.on(kJoined, now);
  EXPECT_EQ(node.phase(), MembershipPhase::member);
}

TEST_F(NodeMembershipTest, BeatsOnceASecondHoweverSoonItIsAnswered) {
  join();
  pass(100s, true);
  EXPECT_EQ(beats, 100);
}

TEST_F(NodeMembershipTest, AskedAgainWithWhatItHostsWhenTheControllerIsSilentForTheLease) {
  join();
  running = {"decoder/0#1"};
  pass(9s, false);
  EXPECT_EQ(node.phase(), MembershipPhase::member);
  pass(3s, false);
  EXPECT_EQ(node.phase(), MembershipPhase::apart);
  ASSERT_FALSE(requests.empty());
  EXPECT_THAT(requests.back().running, ElementsAre("decoder/0#1"));
  EXPECT_TRUE(node.wants_new_line());
  EXPECT_FALSE(node.wants_new_line()) << "one at a time";
  pass(6s, false);
  EXPECT_TRUE(node.wants_new_line()) << "and another one when that one brought nothing";
  node.on(kJoined, now);
  EXPECT_EQ(node.phase(), MembershipPhase::member);
  pass(5s, true);
  EXPECT_EQ(node.phase(), MembershipPhase::member);
}

TEST_F(NodeMembershipTest, IsOrphanedAfterTheTimeThatTheControllerNamed) {
  join();
  pass(69s, false);
  EXPECT_EQ(node.phase(), MembershipPhase::apart);
  pass(3s, false);
  EXPECT_EQ(node.phase(), MembershipPhase::orphaned);
  node.on(kJoined, now);
  EXPECT_EQ(node.phase(), MembershipPhase::orphaned) << "what it hosted has ended; a new membership begins anew";
}

TEST_F(NodeMembershipTest, IsOrphanedWhenAnotherControllerGoesOnWithTheJob) {
  join();
  pass(12s, false);
  Joined other = kJoined;
  other.term = 2;
  node.on(other, now);
  EXPECT_EQ(node.phase(), MembershipPhase::orphaned);
}

TEST_F(NodeMembershipTest, AControllerThatGaveItUpIsAskedAtOnce) {
  join();
  pass(2s, true);
  node.on(HeartbeatAck{.is_member = false}, now);
  pass(100ms, true);
  EXPECT_EQ(requests.size(), 1u);
}

TEST_F(NodeMembershipTest, ATimeInWhichItWasStoppedIsNoSilence) {
  join();
  pass(2s, true);
  now += 100s;
  pass(2s, false);
  EXPECT_EQ(node.phase(), MembershipPhase::member);
}

TEST_F(NodeMembershipTest, ARefusalEndsTheAsking) {
  pass(1s, false);
  node.on(Reply{.code = 2, .text = "a newer process has joined as node 'a'"});
  requests.clear();
  pass(10s, false);
  EXPECT_TRUE(requests.empty());
  EXPECT_EQ(node.reason(), "a newer process has joined as node 'a'");
}

}  // namespace
}  // namespace troupe::workers
