// The rollout worker's state machine by itself: the test is its simulators and its feeds.
#include "workers/rollout/rollout_worker.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "env/registry/registry.h"
#include "tests/workers/rollout/scripted_net.h"

namespace troupe::workers {
namespace {

using testing::ScriptedNet;

struct RolloutWorkerTest : ::testing::Test {
  static JobConfig one_block_job() {
    JobConfig job;
    job.env.id = "CartPole-v1";
    job.env.num_envs = 2;
    job.env.blocks = 1;
    job.rollout.steps = 8;
    return job;
  }
  RolloutWorker::Effects effects() {
    return {.ask = [this](const std::string& simulator, const Credit&, std::span<const std::byte>) -> Result<void> {
              asked.push_back(simulator);
              return {};
            },
            .memory = [](std::uint32_t) { return std::span<const std::byte>(); },
            .weights = [](std::uint64_t, const TrajectoryRequest&) { return PolicyWeightsPtr(); },
            .newest_fence = [this] { return newest_fence; },
            .report = [](const std::string&, const std::string&, const std::string&) {}};
  }
  TrajectoryOrder order(std::uint64_t fence) {
    return {.send = [this](Item item) -> Result<void> {
              refused += item.error.empty() ? 0 : 1;
              return {};
            },
            .feed = "learner/0",
            .credit = {.slot = 0, .position = 0, .fence = fence},
            .request = {},
            .memory = memory};
  }

  std::vector<std::string> asked;
  int refused = 0;
  std::uint64_t newest_fence = 0;
  const EnvSpec spec = (*make_env_factory("CartPole-v1"))->spec();
  RolloutWorker worker{
      one_block_job(), spec, std::make_shared<ScriptedNet>(ScriptedNet::Options{}), {.slots = 2}, effects()};
  std::vector<std::byte> memory = std::vector<std::byte>(static_cast<std::size_t>(worker.layout().bytes));
  const RolloutWorker::Clock::time_point now = RolloutWorker::Clock::now();
};

TEST_F(RolloutWorkerTest, AnOrderThatWaitsForASupersededAnswerIsBegunElsewhereWhenItsSimulatorIsLost) {
  worker.simulator_joined("env/0#0", now);
  worker.simulator_joined("env/1#0", now);
  worker.ordered(order(1), now);
  ASSERT_EQ(asked.size(), 1u);
  worker.ordered(order(2), now);  // the group formed again; the block is still with its simulator
  EXPECT_EQ(refused, 1);
  ASSERT_EQ(asked.size(), 1u);
  worker.simulator_gone(asked[0], now);
  ASSERT_EQ(asked.size(), 2u);
  EXPECT_NE(asked[1], asked[0]);
}

TEST_F(RolloutWorkerTest, WhatAnOlderGroupOrderedGoesBackOnceANewOneHasPublished) {
  worker.simulator_joined("env/0#0", now);
  newest_fence = 1;
  worker.ordered(order(1), now);
  worker.run(now);
  EXPECT_EQ(refused, 0);
  newest_fence = 2;
  worker.run(now);
  EXPECT_EQ(refused, 1);
  worker.ordered(order(2), now);
  worker.run(now);
  EXPECT_EQ(refused, 1);
}

}  // namespace
}  // namespace troupe::workers
