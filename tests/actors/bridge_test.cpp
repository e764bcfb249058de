#include "actors/bridge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "comm/control/message_codec.h"
#include "tests/actors/test_scheduler.h"

namespace troupe::actors {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr SocketId kUpwards{1}, kDownwards{2};

/// A Finish with a reason of so many bytes, as MessagePack: {1: text}.
std::vector<std::byte> finish_payload(std::uint32_t bytes) {
  std::vector<std::byte> payload = {std::byte{0x81}, std::byte{0x01}, std::byte{0xdb}};
  for (const int shift : {24, 16, 8, 0}) payload.push_back(static_cast<std::byte>(bytes >> shift & 0xff));
  payload.resize(payload.size() + bytes, std::byte{'a'});
  return payload;
}

struct BridgeTest : ::testing::Test {
  BridgeTest() {
    actor = scheduler.system().spawn([this](MailboxActor::pointer) -> MailboxActor::behavior_type {
      return {[this](const ControlMessage& control) { heard.push_back(control.from); }, [](Signal) {}};
    });
    bridge.add_local("learner/0", actor);
  }
  /// An envelope of `from` for `to` comes in from the peer `routing_id` of a ROUTER.
  void receive(const std::string& from, const std::string& to, const std::string& routing_id,
               std::vector<std::byte> payload = finish_payload(3)) {
    bridge.receiver(judge_upstream())(kDownwards, routing_id, make_envelope(Finish::kType, from, to, 0),
                                      std::move(payload));
    scheduler.run();
  }
  /// A message comes in from a peer that the judge takes for this party.
  void receive_as(Party party, const std::string& from, const std::string& to, const Message& message) {
    const auto judge = [party](const PeerProof&, const std::string&, const std::string&) -> Result<Party> {
      return party;
    };
    bridge.receiver(judge)(kDownwards, from + "#1", make_envelope(type_of(message), from, to, 0),
                           encode(message).value());
    scheduler.run();
  }

  testing::TestScheduler scheduler;
  testing::RecordingLoop loop;
  Bridge bridge{loop, "node/0", 7};
  std::vector<std::string> heard;
  MailboxActor actor;
};

TEST_F(BridgeTest, MessagesForANameWithoutAWayAreDropped) {
  bridge.send({"node/0", "learner/5", Finish{.reason = "x"}});
  receive("controller", "learner/5", "controller#1");
  EXPECT_THAT(loop.sent, IsEmpty());
  bridge.set_default_route(kUpwards);
  bridge.send({"node/0", "learner/5", Finish{.reason = "x"}});
  receive("controller", "learner/5", "controller#1");
  EXPECT_EQ(loop.sent.size(), 2u) << "upwards, where the name may be known";
  EXPECT_THAT(heard, IsEmpty());
}

TEST_F(BridgeTest, APeerThatIsNobodyIsNotHeardAndGetsNothing) {
  receive("learner/1", "learner/0", "learner/1#0");
  EXPECT_THAT(heard, IsEmpty());
  bridge.send({"learner/0", "learner/1", Finish{.reason = "an answer"}});
  EXPECT_THAT(loop.sent, IsEmpty()) << "nor does it get what is for that name";
  receive("controller", "learner/0", "node/0#1");
  EXPECT_THAT(heard, ElementsAre("controller"));
}

TEST_F(BridgeTest, WhatIsOutsideTheTableOfRightsIsNeitherDeliveredNorPassedOn) {
  bridge.set_default_route(kUpwards);
  receive_as(Party::decoder, "decoder/0", "learner/0", Finish{.reason = "x"});
  receive_as(Party::learner, "learner/1", "learner/0", GroupAbort{.actor = "learner/1", .fence = 1, .reason = "x"});
  EXPECT_THAT(heard, IsEmpty());
  receive_as(Party::decoder, "decoder/0", "node/1", Spawn{});
  receive_as(Party::decoder, "decoder/0", "controller", StopJob{});
  EXPECT_THAT(loop.sent, IsEmpty());
  receive_as(Party::decoder, "decoder/0", "controller", ActorUp{.actor = "decoder/0"});
  EXPECT_EQ(loop.sent.size(), 1u) << "passed on upwards";
}

TEST_F(BridgeTest, AnActorThatTellsOfAnotherIsNotHeard) {
  bridge.add_local("controller", actor);
  receive_as(Party::decoder, "decoder/0", "controller", ActorUp{.actor = "decoder/1"});
  EXPECT_THAT(heard, IsEmpty());
  receive_as(Party::decoder, "decoder/0", "controller", ActorUp{.actor = "decoder/0"});
  EXPECT_THAT(heard, ElementsAre("decoder/0"));
}

TEST_F(BridgeTest, MessagesOverTheLimitOfTheWireAreDroppedAndTheNextArrive) {
  receive("controller", "learner/0", "controller#1", finish_payload(65'537));
  EXPECT_THAT(heard, IsEmpty());
  receive("controller", "learner/0", "controller#1", finish_payload(65'536));
  EXPECT_THAT(heard, ElementsAre("controller"));
  bridge.send({"learner/0", "controller", Finish{.reason = std::string(65'537, 'a')}});
  EXPECT_THAT(loop.sent, IsEmpty());
  bridge.send({"learner/0", "controller", Finish{.reason = std::string(65'536, 'a')}});
  ASSERT_EQ(loop.sent.size(), 1u) << "by the way that the controller came";
  EXPECT_EQ(loop.sent[0].incarnation, 7u);
}

}  // namespace
}  // namespace troupe::actors
