// The rollout worker's state machine by itself: the test is its simulators and its feeds.
#include "workers/rollout/rollout_worker.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "env/registry/registry.h"
#include "tests/workers/rollout/scripted_net.h"
#include "workers/rollout/channel_simulators.h"
#include "workers/stream/producer_loop.h"

namespace troupe::workers {
namespace {

using namespace std::chrono_literals;

struct RolloutWorkerTest : ::testing::Test {
  explicit RolloutWorkerTest(
      JobConfig of_job = one_block_job(),
      std::shared_ptr<const PolicyNet> of_net = std::make_shared<ScriptedNet>(ScriptedNet::Options{}))
      : job(std::move(of_job)), net(std::move(of_net)) {}
  static JobConfig one_block_job() {
    JobConfig job;
    job.env.id = "CartPole-v1";
    job.env.num_envs = 2;
    job.env.blocks = 1;
    job.rollout.steps = 8;
    return job;
  }
  RolloutWorker::Effects effects() {
    return {.weights = [this](std::uint64_t, const TrajectoryRequest&) { return weights; },
            .newest_fence = [this] { return newest_fence; },
            .report = [this](const std::string&, const std::string&) { ++failures; },
            .stuck = [this](const std::string&, const std::string&) { ++stuck; }};
  }
  TrajectoryOrder order(std::uint64_t fence, std::int64_t position = 0) {
    return {.send = [this](Item item) -> Result<void> {
              ++(item.error.empty() ? delivered : refused);
              return {};
            },
            .progress = [this] { ++told; },
            .feed = "learner/0",
            .credit = {.slot = 0, .fence = fence},
            .position = position,
            .request = {},
            .memory = memory};
  }

  void join(const std::string& simulator) {
    auto dialled = open_producer(nullptr, consumer->address(), simulator, 2, kPatience);
    simulators[simulator] = std::move(*dialled);
    worker.simulator_joined(simulator, now);
  }
  /// There are weights of a half from here on.
  void publish() {
    const FlatLayout flat = make_flat_layout(net->units()[0].params);
    auto published = std::make_shared<PublishedWeights>();
    published->flats = {at::full({flat.padded(1)}, 0.5f)};
    published->views["actor"] = views_of(flat, published->flats[0], false);
    weights = published;
  }
  /// Who was asked since the last call; credits of an inproc channel are there as soon as they are granted.
  std::vector<std::string> asked() {
    std::vector<std::string> names;
    for (const auto& [name, producer] : simulators) {
      while (producer->next_credit(0ms)) names.push_back(name);
    }
    return names;
  }

  /// Answers what its simulator was asked, at `at`.
  void answer(RolloutWorker::Clock::time_point at) {
    const auto credit = simulators["env/0#0"]->next_credit(0ms);
    ASSERT_TRUE(credit);
    const auto slot = simulators["env/0#0"]->slot(*credit);
    std::fill(slot.begin(), slot.end(), std::byte{0});
    const auto bytes = static_cast<std::size_t>(make_block_layout(spec, 2, 1).bytes);
    const Item item = make_item(*credit, slot, bytes);
    ASSERT_TRUE(simulators["env/0#0"]->send(item));
    worker.answered(item, at);
    worker.run(at);
  }

  static constexpr auto kPatience = 20s;
  const JobConfig job;
  const std::shared_ptr<const PolicyNet> net;
  std::unique_ptr<ChannelConsumer> consumer =
      open_consumer(nullptr, {.name = "rollout/0", .slots = 2, .slot_bytes = 4096, .transport = Transport::inproc}, {})
          .value();
  std::map<std::string, std::unique_ptr<ChannelProducer>> simulators;
  int refused = 0, delivered = 0, failures = 0, told = 0, stuck = 0;
  std::uint64_t newest_fence = 0;
  PublishedWeightsPtr weights;
  const EnvSpec spec = (*make_env_factory("CartPole-v1"))->spec();
  ChannelSimulators dialling{*consumer};
  RolloutWorker worker{job, spec, net, dialling, {}, effects()};
  std::vector<std::byte> memory = std::vector<std::byte>(static_cast<std::size_t>(worker.layout().bytes));
  const RolloutWorker::Clock::time_point now = RolloutWorker::Clock::now();
};

TEST_F(RolloutWorkerTest, AnOrderThatWaitsForASupersededAnswerIsBegunElsewhereWhenItsSimulatorIsLost) {
  join("env/0#0");
  join("env/1#0");
  worker.ordered(order(1), now);
  const auto first = asked();
  ASSERT_EQ(first.size(), 1u);
  worker.ordered(order(2), now);  // the group formed again; the block is still with its simulator
  EXPECT_EQ(refused, 1);
  ASSERT_TRUE(asked().empty());
  consumer->drop_producer(first[0]);
  worker.simulator_gone(first[0], now);
  const auto second = asked();
  ASSERT_EQ(second.size(), 1u);
  EXPECT_NE(second[0], first[0]);
}

TEST_F(RolloutWorkerTest, ALateAnswerOfALostSimulatorFreesItsSlotAndNothingElse) {
  join("env/0#0");
  worker.ordered(order(1), now);
  const auto credit = simulators["env/0#0"]->next_credit(0ms);
  ASSERT_TRUE(simulators["env/0#0"]->send(make_item(*credit, {}, std::size_t{0})));
  consumer->drop_producer("env/0#0");
  worker.simulator_gone("env/0#0", now);
  join("env/1#0");
  worker.run(now);
  ASSERT_EQ(asked(), std::vector<std::string>{"env/1#0"});
  EXPECT_EQ(consumer->free_slots(), 0u);
  worker.answered({.credit = *credit, .bytes = 0, .xxh3 = 0, .error = "late"}, now);
  EXPECT_EQ(consumer->free_slots(), 1u);
  EXPECT_EQ(failures, 0);
}

TEST_F(RolloutWorkerTest, AFeedIsToldAtMostOnceASecondThatAnItemGoesOn) {
  publish();
  join("env/0#0");
  worker.ordered(order(1), now);
  auto at = now;
  answer(at);
  EXPECT_EQ(told, 0) << "a reset is no policy step";
  answer(at += 30s);
  EXPECT_EQ(told, 1);
  answer(at += 500ms);
  EXPECT_EQ(told, 1);
  for (int step = 3; step <= 8; ++step) answer(at += 30s);
  EXPECT_EQ(told, 7);
  EXPECT_EQ(delivered, 1);
  EXPECT_EQ(worker.stats().item_steps, 8);
  EXPECT_EQ(worker.stats().item_seconds, 210.5) << "from the first policy call";
}

TEST_F(RolloutWorkerTest, ASimulatorThatSaysThatARequestGoesOnIsStuckWhenItNoLongerDoes) {
  join("env/0#0");
  worker.ordered(order(1), now);
  const auto credit = simulators["env/0#0"]->next_credit(0ms);
  ASSERT_TRUE(credit);
  worker.run(now + 80s);  // 30 s, and 60 s more for the first request
  worker.went_on(*credit, now + 80s);
  EXPECT_EQ(told, 1) << "its feed waits as well";
  Credit other = *credit;
  ++other.tag;
  worker.went_on(other, now + 160s);
  worker.run(now + 169s);
  EXPECT_EQ(stuck, 0);
  worker.run(now + 178s);
  EXPECT_EQ(stuck, 1);
  EXPECT_EQ(told, 1);
}

struct TwoBlocksTest : RolloutWorkerTest {
  static JobConfig two_blocks() {
    JobConfig job = one_block_job();
    job.env.num_envs = 4;
    job.env.blocks = 2;
    return job;
  }
  TwoBlocksTest() : RolloutWorkerTest(two_blocks()) {}
};

TEST_F(TwoBlocksTest, ARequestIsNotStuckForTheTimeThatItsSimulatorServedAnother) {
  join("env/0#0");
  worker.ordered(order(1, 0), now);
  worker.ordered(order(1, 1), now);
  worker.run(now + 8s);
  answer(now + 80s);  // the first block; 30 s, and 60 s more for the first request
  worker.run(now + 160s);
  EXPECT_EQ(stuck, 0);
  worker.run(now + 171s);
  EXPECT_EQ(stuck, 1);
}

struct SlowPolicyTest : RolloutWorkerTest {
  static constexpr auto kCall = 60ms;
  static JobConfig hasty() {
    JobConfig job = one_block_job();
    job.env.step_timeout = Seconds(0.05);
    return job;
  }
  SlowPolicyTest() : RolloutWorkerTest(hasty(), std::make_shared<ScriptedNet>(ScriptedNet::Options{.takes = kCall})) {}
};

TEST_F(SlowPolicyTest, ASimulatorIsNotStuckForTheTimeThatThePolicyTook) {
  publish();
  join("env/0#0");
  worker.ordered(order(1), now);
  answer(now);  // the call of the policy takes longer than env.step_timeout_s allows a step
  const auto asked_at = now + kCall;
  worker.run(asked_at + 1ms);
  EXPECT_EQ(stuck, 0);
  worker.run(asked_at + 100 * kCall);
  EXPECT_EQ(stuck, 1);
}

TEST_F(RolloutWorkerTest, WhatAnOlderGroupOrderedGoesBackOnceANewOneHasPublished) {
  join("env/0#0");
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
