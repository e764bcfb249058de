#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <string>

#include "tests/workers/rollout/scripted_net.h"
#include "workers/rollout/weight_publisher.h"
#include "workers/rollout/weight_receiver.h"

namespace troupe::workers {
namespace {

using namespace std::chrono_literals;

constexpr auto kPatience = 20s;

/// Learner ranks that publish to one rollout worker over a channel in this process.
struct WeightsTest : ::testing::Test {
  std::shared_ptr<const ScriptedNet> net = std::make_shared<ScriptedNet>(ScriptedNet::Options{.pad = 3000});
  std::unique_ptr<WeightReceiver> receiver;
  std::unique_ptr<ChannelConsumer> consumer;
  std::vector<std::unique_ptr<WeightPublisher>> ranks;
  std::vector<std::vector<float>> shards;
  int world = 1;

  void SetUp() override { open(1); }
  void TearDown() override {
    ranks.clear();
    consumer.reset();
  }
  /// Small buckets, so that a version is cut into several.
  void open(std::size_t keep) {
    consumer.reset();
    receiver = std::make_unique<WeightReceiver>(net, WeightReceiver::Options{.keep = keep});
    auto opened = open_consumer(
        nullptr, {.name = "rollout/0/weights", .slots = 8, .slot_bytes = 4096 + 100, .transport = Transport::inproc},
        receiver->callbacks());
    consumer = std::move(*opened);
    receiver->set_consumer(consumer.get());
  }
  static Result<std::unique_ptr<ChannelProducer>> dial(const std::string& address, const std::string& producer) {
    return open_producer(nullptr, address, producer, 2, 5s);
  }
  /// Publishes, as the only rank of a group, weights that are all `value`.
  void publish_alone(WeightPublisher& rank, std::uint64_t fence, std::int64_t version, float value) {
    rank.begin(fence, 1, 0);
    const auto elements = make_flat_layout(net->units()[0].params).shard(1);
    const std::vector<float> shard(static_cast<std::size_t>(elements), value);
    const std::span<const float> view(shard);
    rank.publish(version, std::span(&view, 1), nullptr, /*is_evaluated=*/false);
    rank.set_peers({consumer->address()}, {});
  }
  void form(int num_ranks, std::uint64_t fence, std::size_t keep = 1) {
    world = num_ranks;
    while (static_cast<int>(ranks.size()) < num_ranks) {
      const std::string name = "learner/" + std::to_string(ranks.size()) + "#0";
      ranks.push_back(
          std::make_unique<WeightPublisher>(*net, WeightPublisher::Options{.producer = name, .keep = keep}, dial));
    }
    for (int rank = 0; rank < world; ++rank) ranks[static_cast<std::size_t>(rank)]->begin(fence, world, rank);
  }
  void connect() {
    for (auto& rank : ranks) rank->set_peers({consumer->address()}, {});
  }
  /// Waits until the publisher has counted a version that reached a worker, which it does after the worker has it.
  static WeightPublisher::Stats stats_once_sent(const WeightPublisher& rank) {
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    while (rank.stats().sent == 0 && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
    return rank.stats();
  }
  /// Element i of the unit is version + i / 1e6.
  void publish(int rank, std::int64_t version, const NormaliserState* normaliser = nullptr, bool is_evaluated = false) {
    const FlatLayout layout = make_flat_layout(net->units()[0].params);
    std::vector<float> shard(static_cast<std::size_t>(layout.shard(world)));
    for (std::size_t i = 0; i < shard.size(); ++i) {
      shard[i] =
          static_cast<float>(version) + static_cast<float>(static_cast<std::size_t>(rank) * shard.size() + i) / 1e6f;
    }
    const std::span<const float> view(shard);
    ranks[static_cast<std::size_t>(rank)]->publish(version, std::span(&view, 1), normaliser, is_evaluated);
  }
  /// As an evaluator.
  void connect_evaluator() {
    for (auto& rank : ranks) rank->set_peers({consumer->address()}, {consumer->address()});
  }
  void publish_evaluated(std::int64_t version) {
    for (int rank = 0; rank < world; ++rank) publish(rank, version, nullptr, /*is_evaluated=*/true);
  }
};

TEST_F(WeightsTest, AVersionArrivesWholeFromAllRanks) {
  for (const int num_ranks : {1, 2, 3}) {
    form(num_ranks, static_cast<std::uint64_t>(num_ranks));
    connect();
    for (int rank = 0; rank < num_ranks; ++rank) publish(rank, 5);
    const auto weights =
        receiver->wait_for(static_cast<std::uint64_t>(num_ranks), {.version = 5, .exact = true}, kPatience);
    const at::Tensor w = (*weights)->views.at("actor")["w"];
    ASSERT_EQ(w.numel(), 3001);
    for (std::int64_t i = 0; i < w.numel(); ++i)
      ASSERT_EQ(w.data_ptr<float>()[i], 5.0f + static_cast<float>(i) / 1e6f) << i;
  }
}

TEST_F(WeightsTest, AVersionTravelsInTheDtypeThatActs) {
  net = std::make_shared<ScriptedNet>(ScriptedNet::Options{.pad = 3000, .dtype = at::kBFloat16});
  open(1);
  form(2, 1);
  connect();
  for (const int rank : {0, 1}) publish(rank, 5);
  const auto weights = receiver->wait_for(1, {.version = 5, .exact = true}, kPatience);
  const at::Tensor w = (*weights)->views.at("actor")["w"];
  EXPECT_TRUE(at::equal(w, (5 + at::arange(3001, at::kFloat) / 1e6).to(at::kBFloat16)));
  const FlatLayout layout = make_flat_layout(net->units()[0].params);
  EXPECT_EQ(stats_once_sent(*ranks[1]).bytes, 2 * layout.shard(2));
}

TEST_F(WeightsTest, StatisticsTravelWithTheWeights) {
  form(2, 1);
  connect();
  NormaliserState state{Moments(3), Moments(1)};
  const std::vector<float> rows{1, 2, 3, 5, 6, 7};
  state.observed.add(rows);
  publish(0, 1, &state);
  publish(1, 1);
  const auto weights = receiver->wait_for(1, {.version = 1}, kPatience);
  EXPECT_EQ((*weights)->normaliser.observed.count(), 2);
  EXPECT_EQ((*weights)->normaliser.observed.mean(2), 5);
  EXPECT_EQ((*weights)->normaliser.observed.variance(0), 4);
  EXPECT_EQ((*weights)->normaliser.returned.dim(), 1u);
}

TEST_F(WeightsTest, AWorkerThatJoinsLateGetsTheNewestVersion) {
  form(1, 1);
  for (const std::int64_t version : {0, 1, 2}) publish(0, version);
  connect();
  const auto weights = receiver->wait_for(1, {.version = 0}, kPatience);
  EXPECT_EQ((*weights)->version, 2);
}

TEST_F(WeightsTest, WhoActsKeepsItsVersionWhileNewerOnesArrive) {
  form(1, 1);
  connect();
  publish(0, 0);
  const auto held = receiver->wait_for(1, {.version = 0}, kPatience);
  for (std::int64_t version = 1; version <= 5; ++version) {
    publish(0, version);
    ASSERT_TRUE(receiver->wait_for(1, {.version = version}, kPatience));
  }
  EXPECT_EQ((*held)->views.at("actor")["w"].data_ptr<float>()[0], 0.0f);
  EXPECT_EQ(receiver->newest()->version, 5);
}

TEST_F(WeightsTest, ExactVersionsAreKeptAsLongAsTheyMayBeAskedFor) {
  open(3);
  form(1, 1, /*keep=*/3);
  for (const std::int64_t version : {0, 1, 2}) publish(0, version);
  connect();
  ASSERT_TRUE(receiver->wait_for(1, {.version = 2, .exact = true}, kPatience));
  EXPECT_NE(receiver->find(1, {.version = 0, .exact = true}), nullptr);
  publish(0, 3);
  ASSERT_TRUE(receiver->wait_for(1, {.version = 3, .exact = true}, kPatience));
  EXPECT_EQ(receiver->find(1, {.version = 0, .exact = true}), nullptr);
  EXPECT_EQ(receiver->find(1, {.version = 1, .exact = true})->version, 1);
}

TEST_F(WeightsTest, AnEvaluatorGetsTheVersionsThatAreToBeEvaluatedAlone) {
  form(2, 1);
  connect_evaluator();
  for (const std::int64_t version : {0, 1, 3}) {
    publish(0, version);
    publish(1, version);
    publish_evaluated(version + 1);
    ASSERT_TRUE(receiver->wait_for(1, {.version = version + 1, .exact = true}, kPatience)) << version;
  }
  EXPECT_EQ(receiver->stats().versions, 3);
}

TEST_F(WeightsTest, AnEvaluatorThatComesLateGetsTheNewestVersionToBeEvaluated) {
  form(2, 1);
  publish_evaluated(2);
  publish_evaluated(4);
  for (const int rank : {0, 1}) publish(rank, 5);
  connect_evaluator();
  ASSERT_TRUE(receiver->wait_for(1, {.version = 4, .exact = true}, kPatience));
  // Those of a group that is gone are not sent any more.
  form(2, 2);
  for (const int rank : {0, 1}) publish(rank, 3);
  publish_evaluated(6);
  ASSERT_TRUE(receiver->wait_for(2, {.version = 6, .exact = true}, kPatience));
  EXPECT_EQ(receiver->stats().versions, 2);
}

TEST_F(WeightsTest, BucketsOfAnOlderGroupAreIgnored) {
  form(1, 2);
  connect();
  publish(0, 7);
  ASSERT_TRUE(receiver->wait_for(2, {.version = 7}, kPatience));
  // A rank that has not heard of the new group yet.
  WeightPublisher late(*net, {.producer = "learner/9#0"}, dial);
  publish_alone(late, 1, 99, -1.0f);
  ASSERT_GT(stats_once_sent(late).sent, 0);
  EXPECT_EQ(receiver->newest()->version, 7);
  EXPECT_GT(receiver->stats().ignored, 0);
  // And a version of an older group is none of a newer one, whatever its number.
  form(1, 3);
  publish(0, 2);
  const auto weights = receiver->wait_for(3, {.version = 2}, kPatience);
  EXPECT_EQ((*weights)->version, 2);
}

TEST_F(WeightsTest, AVersionThatARankLeftOutIsForgotten) {
  form(2, 1);
  connect();
  publish(0, 1);
  publish(1, 2);  // rank 1 left version 1 out
  publish(0, 2);
  const auto weights = receiver->wait_for(1, {.version = 1}, kPatience);
  EXPECT_EQ((*weights)->version, 2);
}

TEST_F(WeightsTest, AWaitSaysWhatIsThere) {
  form(1, 1);
  connect();
  publish(0, 4);
  ASSERT_TRUE(receiver->wait_for(1, {.version = 4}, kPatience));
  const auto weights = receiver->wait_for(1, {.version = 6}, 10ms);
  EXPECT_EQ(weights.error().code(), Errc::deadline_exceeded);
  EXPECT_THAT(
      weights.error().message(),
      ::testing::HasSubstr("version 6 or newer of group 1; 1 learners have dialled, the newest whole version is 4"));
}

TEST_F(WeightsTest, ALearnerThatCameBackPublishesUnderItsNewName) {
  form(1, 1);
  connect();
  publish(0, 4);
  ASSERT_TRUE(receiver->wait_for(1, {.version = 4}, kPatience));
  ranks.clear();
  receiver->producer_gone("learner/0#0");
  WeightPublisher next(*net, {.producer = "learner/0#1"}, dial);
  publish_alone(next, 2, 3, 3.0f);
  receiver->wait_for(2, {.version = 3}, kPatience).value();
}

TEST(WeightBucketTest, WhatDoesNotFitIsRefused) {
  std::vector<std::byte> item(kWeightBucketHead + 8);
  const std::vector<std::byte> run(8);
  const WeightBucket good{.world = 2, .rank = 1, .total = 8, .offset = 0, .count = 8};
  const auto changed = [&](auto change) {
    WeightBucket bucket = good;
    change(bucket);
    std::memcpy(item.data(), &bucket, sizeof bucket);
    return read_bucket(item).has_value();
  };
  EXPECT_TRUE(changed([](WeightBucket&) {}));
  EXPECT_FALSE(changed([](WeightBucket& b) { b.rank = 2; }));
  EXPECT_FALSE(changed([](WeightBucket& b) { b.world = 0; }));
  EXPECT_FALSE(changed([](WeightBucket& b) { b.count = 9; }));
  EXPECT_FALSE(changed([](WeightBucket& b) { b.total = 7; }));
  EXPECT_FALSE(changed([](WeightBucket& b) { b.offset = ~0ULL; }));
  EXPECT_FALSE(read_bucket(std::span(item).first(10)));
}

}  // namespace
}  // namespace troupe::workers
