#include "actors/join_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/actors/test_scheduler.h"
#include "workers/controller/join_rules.h"

namespace troupe::actors {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

struct JoinQueueTest : ::testing::Test {
  JoinQueueTest() { bridge.set_default_route(SocketId{1}); }
  /// The process `incarnation` of node `name` asks to join.
  void ask(const std::string& name, std::uint64_t incarnation, const std::string& key = "key") {
    Join join;
    join.name = name;
    join.incarnation = incarnation;
    join.cpus = 1;
    join.key = key;
    workers::describe_build(join);
    const std::string from = name + "#" + std::to_string(incarnation);
    bridge.send({from, "controller", join});
    scheduler.run();
  }
  /// Who was answered so far.
  std::vector<std::string> answered() const {
    std::vector<std::string> names;
    for (const Envelope& envelope : loop.sent) names.push_back(envelope.to);
    return names;
  }
  /// Who waits, once `nodes` do.
  std::vector<std::string> waiting(std::size_t nodes) {
    std::vector<std::string> names;
    const auto joins = queue.wait_for(nodes, 0ms).value();
    for (const ControlMessage& control : joins) names.push_back(control.from);
    return names;
  }

  testing::TestScheduler scheduler;
  testing::RecordingLoop loop;
  Bridge bridge{loop, "controller", 7};
  JoinQueue queue{scheduler.system(), bridge};
};

TEST_F(JoinQueueTest, ARequestThatIsRepeatedCountsOnce) {
  ask("a", 1);
  ask("a", 1);
  ask("b", 1);
  EXPECT_THAT(waiting(2), ElementsAre("a#1", "b#1"));
  EXPECT_THAT(answered(), IsEmpty()) << "the controller answers";
  EXPECT_FALSE(queue.wait_for(3, 0ms));
}

TEST_F(JoinQueueTest, OfTwoProcessesOfOneNameTheNewerCounts) {
  ask("a", 1);
  ask("a", 2);
  EXPECT_THAT(answered(), ElementsAre("a#1"));
  ask("a", 1);
  EXPECT_THAT(answered(), ElementsAre("a#1", "a#1")) << "it stays replaced";
  EXPECT_THAT(waiting(1), ElementsAre("a#2"));
}

TEST_F(JoinQueueTest, ANameBelongsToTheKeyThatAskedFirst) {
  ask("a", 1, "first key");
  ask("a", 2, "other key");
  EXPECT_THAT(answered(), ElementsAre("a#2"));
  EXPECT_THAT(waiting(1), ElementsAre("a#1"));
}

TEST_F(JoinQueueTest, NodesAreToldWhenNothingComesOfIt) {
  ask("a", 1);
  ask("b", 4);
  queue.turn_away("the plan was refused");
  EXPECT_THAT(answered(), ElementsAre("a#1", "b#4"));
}

}  // namespace
}  // namespace troupe::actors
