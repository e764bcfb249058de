#include "workers/controller/actor_pools.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/workers/controller/job_controller_fixture.h"

namespace troupe::workers {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST_F(JobControllerTest, ScalingUpSpawnsOnlyNewDecodersAndDownRemovesThem) {
  begin();
  EXPECT_EQ(job->scale({.pool = "decoder", .target = 4}, now).code, 0);
  const auto spawns = effects.take<Spawn>();
  ASSERT_EQ(spawns.size(), 2u);
  EXPECT_EQ(spawns[0].second.actor, "decoder/2");
  up("decoder/2");
  up("decoder/3");
  EXPECT_EQ(job->scale({.pool = "decoder", .target = 1}, now).code, 0);
  const auto stops = effects.take<Stop>();
  ASSERT_EQ(stops.size(), 3u);
  for (const auto& [to, stop] : stops) died(stop.actor, stop.incarnation, 15);
  pass(1s);
  EXPECT_TRUE(effects.take<Spawn>().empty()) << "who was scaled away stays away";
  const auto status = nlohmann::json::parse(job->status_json(now));
  EXPECT_EQ(status["pools"]["decoder"]["target"], 1);
  EXPECT_EQ(status["pools"]["decoder"]["up"], 1);
}

TEST_F(JobControllerTest, ScalingWhatIsNotAPoolIsRefusedWithAReason) {
  begin();
  const Reply reply = job->scale({.pool = "decodr", .target = 2}, now);
  EXPECT_EQ(reply.code, 3);
  EXPECT_THAT(reply.text, HasSubstr("decoder"));
}

TEST_F(JobControllerTest, ANameThatComesBackGetsANewIncarnation) {
  begin();
  ASSERT_EQ(job->scale({.pool = "decoder", .target = 1}, now).code, 0);
  const auto stopped = effects.take<Stop>().at(0).second;
  died(stopped.actor, stopped.incarnation, 15);
  ASSERT_EQ(job->scale({.pool = "decoder", .target = 2}, now).code, 0);
  EXPECT_EQ(effects.take<Spawn>().at(0).second.incarnation, 1);
}

TEST_F(JobControllerTest, AnActorThatSurvivesSigkillIsNoneOfItsPoolWhenThatIsScaled) {
  begin();
  job->handle("node/0", ActorExited{.actor = "decoder/0", .killed_by_us = true, .unkillable = true}, now);
  EXPECT_EQ(job->scale({.pool = "decoder", .target = 1}, now).code, 0);
  EXPECT_TRUE(effects.take<Stop>().empty()) << "decoder/1 is the one that works";
  EXPECT_EQ(job->scale({.pool = "decoder", .target = 2}, now).code, 0);
  const auto spawns = effects.take<Spawn>();
  ASSERT_EQ(spawns.size(), 1u);
  EXPECT_EQ(spawns[0].second.actor + "#" + std::to_string(spawns[0].second.incarnation), "decoder/0#1");
}

/// Beside the two decoders of node/0.
struct NodesOfAJobTest : JobControllerTest {
  std::vector<std::string> two_decoders_on_another_node() {
    job->node_joined(other, 1, {}, /*is_new_process=*/false, now);
    EXPECT_EQ(job->scale({.pool = "decoder", .target = 4}, now).code, 0);
    std::vector<std::string> there;
    for (const auto& [to, spawn] : effects.take<Spawn>()) {
      up(spawn.actor);
      if (to == "node/1") there.push_back(spawn.actor);
    }
    EXPECT_EQ(there.size(), 2u) << "node/1 has the free core";
    return there;
  }
  /// Both decoders are on node/1, and node/0 has no memory for them.
  void place_decoders_elsewhere() {
    setup.plan.nodes.push_back(other);
    for (PlannedActor& actor : setup.plan.actors) {
      if (actor.role == "decoder") actor.node = 1;
    }
    fill_own_node();
  }
  /// node/0 has no memory for another decoder.
  void fill_own_node() {
    setup.plan.nodes[0].memory_bytes = 1;
    setup.plan.decoder_memory_bytes = 1;
    job = std::make_unique<JobController>(setup, *db, effects);
  }
  const NodeSnapshot other{.name = "other", .cpus = 1, .memory_bytes = std::int64_t{8} << 30};
};

TEST_F(NodesOfAJobTest, ALostNodeIsNotOfferedToScale) {
  begin();
  two_decoders_on_another_node();
  job->node_lost(1, now);
  effects.sent.clear();
  ASSERT_EQ(job->scale({.pool = "decoder", .target = 5}, now).code, 0);
  for (const auto& [to, spawn] : effects.take<Spawn>()) EXPECT_EQ(to, "node/0");
}

TEST_F(NodesOfAJobTest, ASuspectNodeIsNotOfferedToScaleUntilItIsHeardAgain) {
  begin();
  job->node_joined(other, 1, {}, /*is_new_process=*/false, now);
  job->node_suspected(1, true);
  ASSERT_EQ(job->scale({.pool = "decoder", .target = 3}, now).code, 0);
  EXPECT_EQ(effects.take<Spawn>().at(0).first, "node/0");
  job->node_suspected(1, false);
  ASSERT_EQ(job->scale({.pool = "decoder", .target = 4}, now).code, 0);
  EXPECT_EQ(effects.take<Spawn>().at(0).first, "node/1");
}

TEST_F(NodesOfAJobTest, WhatANodeStillHostsOfAnEarlierPlaceIsKilledWhenItJoinsAgain) {
  begin();
  const auto there = two_decoders_on_another_node();
  job->node_lost(1, now);
  EXPECT_THAT(effects.ended, ElementsAre(there[0] + "#0", there[1] + "#0"));
  effects.sent.clear();
  job->node_joined(other, 1, {there[0] + "#0", there[1] + "#0"}, /*is_new_process=*/false, now);
  std::vector<std::string> killed;
  for (const auto& [to, stop] : effects.take<Stop>()) {
    EXPECT_EQ(to, "node/1");
    EXPECT_EQ(stop.incarnation, 0);
    killed.push_back(stop.actor);
  }
  EXPECT_EQ(killed, there);
}

TEST_F(NodesOfAJobTest, WhatALostNodeHadYetToStartIsKilledWhenItJoinsAgain) {
  begin();
  const auto there = two_decoders_on_another_node();
  job->node_lost(1, now);
  effects.sent.clear();
  // Their Spawn was on its way when the node was lost, and comes behind its request to join.
  job->node_joined(other, 1, {}, /*is_new_process=*/false, now);
  std::vector<std::string> killed;
  for (const auto& [to, stop] : effects.take<Stop>()) killed.push_back(to + " " + stop.actor);
  EXPECT_THAT(killed, ElementsAre("node/1 " + there[0], "node/1 " + there[1]));
}

TEST_F(NodesOfAJobTest, WhatEndedWithTheProcessBeforeIsNotStoppedInTheNewOne) {
  begin();
  two_decoders_on_another_node();
  job->node_lost(1, now);
  effects.sent.clear();
  job->node_joined(other, 1, {}, /*is_new_process=*/true, now);
  EXPECT_TRUE(effects.take<Stop>().empty());
}

TEST_F(NodesOfAJobTest, WhatANodeHostsInItsPlaceStaysWhenItJoinsAgain) {
  begin();
  const auto there = two_decoders_on_another_node();
  job->node_joined(other, 1, {there[0] + "#0", there[1] + "#0"}, /*is_new_process=*/false, now);
  EXPECT_TRUE(effects.take<Stop>().empty());
  EXPECT_TRUE(effects.take<Spawn>().empty());
}

TEST_F(NodesOfAJobTest, ActorsOfALostNodeWaitWhenNoOtherHasRoomAndStartWhenOneHas) {
  fill_own_node();
  begin();
  const auto there = two_decoders_on_another_node();
  job->node_lost(1, now);
  EXPECT_TRUE(effects.take<Spawn>().empty()) << "whatever fits, and nothing does";
  pass(1h);
  EXPECT_EQ(job->failure(), "") << "two decoders are left";
  job->node_joined(other, 1, {}, /*is_new_process=*/false, now);
  std::vector<std::string> spawned;
  for (const auto& [to, spawn] : effects.take<Spawn>()) spawned.push_back(to + " " + spawn.actor);
  EXPECT_THAT(spawned, ElementsAre("node/1 " + there[0], "node/1 " + there[1]));
}

TEST_F(NodesOfAJobTest, APoolWithoutARoomAnywhereEndsTheJobAfterTheStartTimeout) {
  place_decoders_elsewhere();
  begin();
  job->node_lost(1, now);
  pass(0ms);
  pass(to_milliseconds(setup.config.cluster.start_timeout) - 1s);
  EXPECT_EQ(job->failure(), "");
  pass(2s);
  EXPECT_THAT(job->failure(), HasSubstr("no node has had room for any decoder"));
}

TEST_F(NodesOfAJobTest, APoolOfWhichNothingIsLeftButAnUnkillableActorEndsTheJobToo) {
  setup.plan.nodes.push_back(other);
  setup.plan.actors[3].node = 1;  // decoder/1
  fill_own_node();
  begin();
  job->handle("node/0", ActorExited{.actor = "decoder/0", .killed_by_us = true, .unkillable = true}, now);
  job->node_lost(1, now);
  pass(0ms);
  pass(to_milliseconds(setup.config.cluster.start_timeout) + 1s);
  EXPECT_THAT(job->failure(), HasSubstr("no node has had room for any decoder"));
}

TEST_F(NodesOfAJobTest, WhatWaitsForRoomStartsOnANodeThatIsHeardAgain) {
  place_decoders_elsewhere();
  begin();
  NodeSnapshot third = other;
  third.name = "third";
  job->node_joined(third, 2, {}, /*is_new_process=*/false, now);
  job->node_suspected(2, true);
  job->node_lost(1, now);
  pass(50ms);
  EXPECT_TRUE(effects.take<Spawn>().empty());
  job->node_suspected(2, false);
  pass(50ms);
  const auto spawns = effects.take<Spawn>();
  ASSERT_EQ(spawns.size(), 2u);
  EXPECT_EQ(spawns[0].first, "node/2");
}

TEST_F(NodesOfAJobTest, TheRoomOfAnActorThatSurvivesSigkillIsFreeWhenItsEndIsConfirmed) {
  setup.plan.nodes[0].memory_bytes = 8;  // the five actors, two more, and what is kept free
  setup.plan.decoder_memory_bytes = 1;
  job = std::make_unique<JobController>(setup, *db, effects);
  begin();
  ASSERT_EQ(job->scale({.pool = "decoder", .target = 3}, now).code, 0);
  job->handle("node/0", ActorExited{.actor = "decoder/0", .killed_by_us = true, .unkillable = true}, now);
  EXPECT_EQ(job->scale({.pool = "decoder", .target = 5}, now).code, 3) << "it still has its memory";
  died("decoder/0", 0);
  EXPECT_EQ(job->scale({.pool = "decoder", .target = 5}, now).code, 0);
}

TEST_F(NodesOfAJobTest, ThePlanOfRecordKnowsWhereActorsOfALostNodeAre) {
  begin();
  two_decoders_on_another_node();
  const auto before = job->plan().revision;
  job->node_lost(1, now);
  EXPECT_GT(job->plan().revision, before);
  const auto recorded = nlohmann::json::parse(db->newest_plan().value()->json);
  for (const auto& actor : recorded["actors"]) EXPECT_EQ(actor["node"], 0) << actor["name"];
}

TEST_F(NodesOfAJobTest, ALostNodeDoesNotHoldUpTheEndOfTheJob) {
  begin();
  two_decoders_on_another_node();
  job->interrupt({.why = "SIGINT"}, now);
  job->interrupt({.why = "SIGINT"}, now);
  for (const char* actor : {"checkpointer/0", "decoder/0", "decoder/1", "learner/0", "learner/1"}) died(actor, 0, 15);
  pass(0ms);
  EXPECT_EQ(job->exit_code(), std::nullopt);
  job->node_lost(1, now);
  pass(0ms);
  EXPECT_EQ(job->exit_code(), 130);
}

TEST_F(NodesOfAJobTest, AnActorOnALostNodeMovesUnlessItIsBeingRemoved) {
  begin();
  const auto there = two_decoders_on_another_node();
  ASSERT_EQ(job->scale({.pool = "decoder", .target = 3}, now).code, 0);
  const auto stopped = effects.take<Stop>().at(0);
  ASSERT_EQ(stopped.first, "node/1");
  job->node_lost(1, now);
  std::vector<std::string> spawned;
  for (const auto& [to, spawn] : effects.take<Spawn>()) spawned.push_back(to + " " + spawn.actor);
  EXPECT_THAT(spawned, ElementsAre("node/0 " + (there[0] == stopped.second.actor ? there[1] : there[0])));
  const auto status = nlohmann::json::parse(job->status_json(now));
  for (const auto& actor : status["actors"]) EXPECT_NE(actor["name"], stopped.second.actor);
}

/// A job of reinforcement learning: one learner, two simulators, two rollout workers.
struct RlJobControllerTest : JobControllerTest {
  void SetUp() override {
    JobControllerTest::SetUp();
    setup.config.job.kind = JobKind::rl;
    setup.plan.actors = actors_of({{"learner", 1}, {"env", 2}, {"rollout", 2}, {"checkpointer", 1}});
    setup.plan.batch = {.global = 8, .micro = 1, .data_ranks = 1, .accumulation = 8};
    job = std::make_unique<JobController>(setup, *db, effects);
    job->start(now);
  }
  void rollout_up(const std::string& actor, std::int64_t incarnation = 0) {
    job->handle(actor,
                ActorUp{.actor = actor,
                        .incarnation = incarnation,
                        .pid = 1,
                        .channels = {"shm:" + actor},
                        .weights = {"shm:" + actor + ".weights"}},
                now);
  }
  void all_up() {
    for (const char* actor : {"checkpointer/0", "env/0", "env/1"}) up(actor);
    for (const char* actor : {"rollout/0", "rollout/1"}) rollout_up(actor);
    up("learner/0");
  }
  std::map<std::string, std::vector<std::string>> dialled() {
    std::map<std::string, std::vector<std::string>> channels;
    for (const auto& [to, peers] : effects.take<Peers>()) {
      if (peers.gone.empty()) channels[to] = peers.channels;
    }
    return channels;
  }
  /// Who hears of whom when everything is up and `actor` dies.
  std::vector<std::string> told_of_the_exit(const std::string& actor) {
    all_up();
    effects.sent.clear();
    died(actor, 0);
    std::vector<std::string> told;
    for (const auto& [to, peers] : effects.take<Peers>()) {
      if (!peers.gone.empty()) told.push_back(to + " " + peers.gone.front());
    }
    return told;
  }
};

TEST_F(RlJobControllerTest, EveryProducerIsToldOfItsConsumersWhenTheGroupForms) {
  all_up();
  const auto channels = dialled();
  EXPECT_THAT(channels.at("env/0"), ElementsAre("shm:rollout/0", "shm:rollout/1"));
  EXPECT_THAT(channels.at("rollout/1"), ElementsAre("shm:learner/0"));
  EXPECT_THAT(channels.at("learner/0"), ElementsAre("shm:rollout/0.weights", "shm:rollout/1.weights"));
}

TEST_F(RlJobControllerTest, ARolloutWorkerThatComesBackIsIntroducedToSimulatorsAndLearners) {
  all_up();
  group_up(effects.take<GroupPlan>().at(0).second.fence);
  died("rollout/0", 0);
  pass(2s);
  effects.sent.clear();
  job->handle("rollout/0",
              ActorUp{.actor = "rollout/0",
                      .incarnation = 1,
                      .pid = 2,
                      .channels = {"shm:again"},
                      .weights = {"shm:again.weights"}},
              now);
  const auto channels = dialled();
  EXPECT_THAT(channels.at("env/1"), ElementsAre("shm:again", "shm:rollout/1"));
  EXPECT_THAT(channels.at("learner/0"), ElementsAre("shm:again.weights", "shm:rollout/1.weights"));
  EXPECT_THAT(channels.at("rollout/0"), ElementsAre("shm:learner/0"));
}

TEST_F(RlJobControllerTest, NobodyIsToldToDialAConsumerThatIsGone) {
  all_up();
  died("env/0", 0);
  pass(0ms);
  died("rollout/1", 0);
  effects.sent.clear();
  job->handle("env/0", ActorUp{.actor = "env/0", .incarnation = 1, .pid = 1}, now);
  EXPECT_THAT(dialled().at("env/0"), ElementsAre("shm:rollout/0"));
}

TEST_F(RlJobControllerTest, TheExitOfASimulatorIsToldToRolloutWorkersAndToNobodyElse) {
  EXPECT_THAT(told_of_the_exit("env/1"), ElementsAre("rollout/0 env/1#0", "rollout/1 env/1#0"));
}

TEST_F(RlJobControllerTest, TheExitOfARolloutWorkerIsToldToLearners) {
  EXPECT_THAT(told_of_the_exit("rollout/1"), ElementsAre("learner/0 rollout/1#0"));
}

TEST_F(RlJobControllerTest, SourcesAreStoppedBeforeWorkersAndSinks) {
  all_up();
  group_up(effects.take<GroupPlan>().at(0).second.fence);
  effects.sent.clear();
  job->interrupt({.why = "test"}, now);
  job->interrupt({.why = "test"}, now);
  std::vector<std::string> order;
  for (const auto& [to, stop] : effects.take<Stop>()) order.push_back(stop.actor);
  EXPECT_THAT(order, ElementsAre("env/0", "env/1", "rollout/0", "rollout/1", "learner/0", "checkpointer/0"));
}

}  // namespace
}  // namespace troupe::workers
