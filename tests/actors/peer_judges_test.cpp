// Who a peer is: from its process or its key, whatever it says itself.
#include "actors/peer_judges.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace troupe::actors {
namespace {

/// The party, or "" where the peer is nobody.
std::string judged(const PeerJudge& judge, const PeerProof& proof, const std::string& routing_id,
                   const std::string& from) {
  const auto party = judge(proof, routing_id, from);
  return party ? std::string(enum_name(*party)) : "";
}

struct HostsTest : ::testing::Test {
  PeerProof process(pid_t pid) const { return {.pid = pid, .uid = ::geteuid()}; }
  std::shared_ptr<HostBook> hosts = std::make_shared<HostBook>();
  PeerJudge judge = judge_hosts(hosts, /*has_owner=*/true);
  HostBook::TimePoint now = std::chrono::steady_clock::now();
};

TEST_F(HostsTest, AHostSpeaksAsItsOwnActorAlone) {
  hosts->expect("decoder/0#1");
  EXPECT_EQ(judged(judge, process(7), "decoder/0#1", "decoder/0#1"), "decoder") << "before its process is known";
  hosts->started("decoder/0#1", 7);
  EXPECT_EQ(judged(judge, process(7), "decoder/0#1", "decoder/0#1"), "decoder");
  for (const auto& [routing_id, from] : std::map<std::string, std::string>{{"learner/0#0", "learner/0#0"},
                                                                           {"controller#1", "controller"},
                                                                           {"decoder/0#2", "decoder/0#2"},
                                                                           {"node/0#1", "node/0#1"},
                                                                           {"cli.7", "cli.7"}})
    EXPECT_EQ(judged(judge, process(7), routing_id, from), "") << routing_id;
  EXPECT_EQ(judged(judge, process(7), "decoder/0#1", "learner/0#0"), "");
  EXPECT_EQ(judged(judge, process(8), "decoder/0#1", "decoder/0#1"), "") << "another process under its routing id";
}

TEST_F(HostsTest, AnEndedHostIsKnownForAMinute) {
  hosts->expect("decoder/0#1");
  hosts->started("decoder/0#1", 7);
  hosts->ended("decoder/0#1", now);
  EXPECT_EQ(judged(judge, process(7), "decoder/0#1", "decoder/0#1"), "decoder") << "its last words may come late";
  EXPECT_EQ(hosts->instance_of(7, now + HostBook::kRemembered), "decoder/0#1");
  EXPECT_FALSE(hosts->instance_of(7, now + HostBook::kRemembered + std::chrono::seconds(1)));
}

TEST_F(HostsTest, AnEndThatIsNoticedBeforeTheStartIsToldLeavesNothingBehind) {
  hosts->expect("decoder/0#1");
  hosts->ended("decoder/0#1", now);
  hosts->started("decoder/0#1", 7);
  EXPECT_FALSE(hosts->instance_of(7, now));
  EXPECT_FALSE(hosts->is_expected("decoder/0#1"));
}

TEST_F(HostsTest, AnotherProcessOfTheUserIsTheOwnerOfTheRunAndOnlyThere) {
  EXPECT_EQ(judged(judge, process(9), "cli.9", "cli.9"), "owner");
  EXPECT_EQ(judged(judge, process(9), "cli.9", "cli.8"), "");
  EXPECT_EQ(judged(judge, process(9), "alice#1", "alice#1"), "");
  EXPECT_EQ(judged(judge, {.pid = 9, .uid = static_cast<std::int64_t>(::geteuid()) + 1}, "cli.9", "cli.9"), "");
  EXPECT_EQ(judged(judge, {}, "cli.9", "cli.9"), "") << "not over ipc";
  EXPECT_EQ(judged(judge_hosts(hosts, /*has_owner=*/false), process(9), "cli.9", "cli.9"), "");
}

TEST(UpstreamTest, OnlyTheControllerSpeaksFromThere) {
  EXPECT_EQ(judged(judge_upstream(), {}, "", "controller"), "controller");
  EXPECT_EQ(judged(judge_upstream(), {}, "", "learner/0"), "");
}

struct KeysTest : ::testing::Test {
  KeysTest() {
    AllowList list;
    list.add({"token", KeyRole::node, "*"});
    list.add({"second", KeyRole::node, "second"});
    list.add({"alice", KeyRole::op, "alice"});
    list.add({"victor", KeyRole::viewer, "victor"});
    keys->replace(std::move(list));
  }
  std::string judged_key(const std::string& key, const std::string& routing_id, const std::string& from) const {
    return judged(judge, {.key = key}, routing_id, from);
  }
  std::shared_ptr<LiveAllowList> keys = std::make_shared<LiveAllowList>();
  std::shared_ptr<PeerBook> peers = std::make_shared<PeerBook>();
  PeerJudge judge = judge_keys(keys, peers);
};

TEST_F(KeysTest, ANodeSpeaksAsItselfItsRankAndWhatIsPlacedThere) {
  EXPECT_EQ(judged_key("second", "second#1.0", "second#1"), "session");
  EXPECT_EQ(judged_key("second", "second#1.0", "second"), "session") << "an older build, to be refused in words";
  EXPECT_EQ(judged_key("second", "second#1.0", "second#2"), "") << "another process of the name";
  EXPECT_EQ(judged_key("second", "second#1.0", "node/1#1"), "") << "it has not joined";
  peers->joined("second", 1);
  EXPECT_EQ(judged_key("second", "second#1.0", "node/1#1"), "agent");
  EXPECT_EQ(judged_key("second", "second#1.0", "node/1#2"), "");
  EXPECT_EQ(judged_key("second", "second#1.0", "node/2#1"), "");
  EXPECT_EQ(judged_key("second", "second#1.0", "node/0#0"), "");
  EXPECT_EQ(judged_key("second", "second#1.0", "decoder/0#0"), "");
  peers->placed("decoder/0", 0, 1);
  EXPECT_EQ(judged_key("second", "second#1.7", "decoder/0#0"), "decoder");
  peers->placed("decoder/0", 1, 0);
  EXPECT_EQ(judged_key("second", "second#1.7", "decoder/0#0"), "") << "it has moved";
  for (const char* name : {"controller", "learner/0#0", "third#1", "cli.1#1", "", "checkpointer/0#0"})
    EXPECT_EQ(judged_key("second", "second#1.0", name), "") << name;
}

TEST_F(KeysTest, ARoutingIdBelongsToTheKeysName) {
  for (const char* id : {"controller#1", "local#1", "node#1", "learner#1", "learner/0#1", "cli.1#1", "third#1",
                         "second", "#1", "alice#1"})
    EXPECT_EQ(judged_key("second", id, "second#1"), "") << id;
  for (const char* id : {"controller#1", "local#1", "learner/0#1", "second#1", "alice#1"})
    EXPECT_EQ(judged_key("token", id, id), "") << id;
  EXPECT_EQ(judged_key("token", "third#1.0", "third#1"), "session") << "a token goes with any name that nobody has";
}

TEST_F(KeysTest, OperatorsAndViewersSpeakAsTheirLinkAlone) {
  EXPECT_EQ(judged_key("alice", "alice#1", "alice#1"), "owner");
  EXPECT_EQ(judged_key("victor", "victor#1", "victor#1"), "viewer");
  EXPECT_EQ(judged_key("alice", "alice#1", "alice"), "");
  EXPECT_EQ(judged_key("alice", "alice#1", "controller"), "");
  EXPECT_EQ(judged_key("victor", "alice#1", "alice#1"), "");
}

TEST_F(KeysTest, ARemovedKeyIsNobody) {
  keys->replace({});
  EXPECT_EQ(judged_key("second", "second#1", "second#1"), "");
  EXPECT_EQ(judged_key("", "second#1", "second#1"), "");
}

}  // namespace
}  // namespace troupe::actors
