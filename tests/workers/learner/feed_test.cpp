#include "workers/learner/feed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <map>
#include <thread>

namespace troupe {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;

/// A consumer whose producers are played by the test: it records grants and lets the test deliver items.
class FakeConsumer final : public ChannelConsumer {
 public:
  explicit FakeConsumer(std::uint32_t slots) : memory_(slots) {}
  Transport transport() const noexcept override { return Transport::inproc; }
  std::string address() const override { return "fake"; }
  std::uint32_t num_slots() const noexcept override { return static_cast<std::uint32_t>(memory_.size()); }
  std::size_t slot_bytes() const noexcept override { return 8; }
  std::span<const std::byte> slot(std::uint32_t index) const override {
    return std::as_bytes(std::span<const std::int64_t>(&memory_[index], 1));
  }
  Result<void> grant(const std::string& producer, const Credit& credit) override {
    if (dropped_.count(producer)) return Error{Errc::not_found, "gone"};
    grants[producer].push_back(credit);
    return {};
  }
  void drop_producer(const std::string& producer) override {
    dropped_.insert({producer, true});
    grants.erase(producer);
  }
  ChannelStats stats() const override { return {}; }

  /// The producer finishes its oldest credit.
  void deliver(Feed& feed, const std::string& producer, const std::string& error = {}) {
    const Credit credit = grants[producer].front();
    grants[producer].pop_front();
    memory_[credit.slot] = credit.position;
    feed.callbacks().on_item(producer, Item{.credit = credit, .bytes = error.empty() ? 8u : 0u, .xxh3 = 1, .error = error});
  }

  std::map<std::string, std::deque<Credit>> grants;

 private:
  std::vector<std::int64_t> memory_;
  std::map<std::string, bool> dropped_;
};

std::vector<std::int64_t> positions(const std::deque<Credit>& credits) {
  std::vector<std::int64_t> found;
  for (const Credit& credit : credits) found.push_back(credit.position);
  return found;
}

struct FeedTest : ::testing::Test {
  // Rank 1 of 2, global batch 8, micro-batches of 2, accumulation 2: step 0 is positions 4..7, step 1 is 12..15.
  Feed::Options options{.order = {.global_batch = 8, .micro_batch = 2, .accumulation = 2, .rank = 1}, .total_steps = 3, .item_deadline = 60s};
  FakeConsumer consumer{6};
  std::vector<std::string> stuck;
  Feed feed{options, [this](const std::string& producer, std::int64_t) { stuck.push_back(producer); }};

  void begin(std::int64_t num_eval = 0, std::int64_t step = 0) {
    feed.set_consumer(&consumer);
    feed.start(1, step, num_eval);
  }
  void join(const std::string& producer, std::uint32_t capacity) { feed.callbacks().on_producer(producer, capacity); }
};

TEST_F(FeedTest, GrantsThisRanksPositionsInOrderWithinSlots) {
  begin();
  join("decoder/0#0", 10);
  EXPECT_THAT(positions(consumer.grants["decoder/0#0"]), ElementsAre(4, 5, 6, 7, 12, 13));
}

TEST_F(FeedTest, GivesEachProducerItsCapacityAtMost) {
  begin();
  join("decoder/0#0", 2);
  join("decoder/1#0", 2);
  EXPECT_EQ(consumer.grants["decoder/0#0"].size(), 2u);
  EXPECT_EQ(consumer.grants["decoder/1#0"].size(), 2u);
  consumer.deliver(feed, "decoder/1#0");
  EXPECT_EQ(consumer.grants["decoder/1#0"].size(), 2u);
}

TEST_F(FeedTest, TakesMicroBatchesInOrderWhateverTheOrderOfArrival) {
  begin();
  join("decoder/0#0", 2);
  join("decoder/1#0", 2);
  consumer.deliver(feed, "decoder/1#0");
  consumer.deliver(feed, "decoder/1#0");
  consumer.deliver(feed, "decoder/0#0");
  consumer.deliver(feed, "decoder/0#0");
  auto first = feed.take(0, 0, 1s);
  ASSERT_TRUE(first) << first.error().message();
  EXPECT_EQ((*first)[0].position, 4);
  EXPECT_EQ((*first)[1].position, 5);
  std::int64_t stored = 0;
  std::memcpy(&stored, (*first)[1].bytes.data(), sizeof stored);
  EXPECT_EQ(stored, 5);
}

TEST_F(FeedTest, ReleasingAStepFreesItsSlots) {
  begin();
  join("decoder/0#0", 10);
  for (int i = 0; i < 6; ++i) consumer.deliver(feed, "decoder/0#0");
  EXPECT_TRUE(consumer.grants["decoder/0#0"].empty());
  feed.release(0);
  EXPECT_THAT(positions(consumer.grants["decoder/0#0"]), ElementsAre(14, 15, 20, 21));
}

TEST_F(FeedTest, AsksOthersForWhatALostProducerOwed) {
  begin();
  join("decoder/0#0", 3);
  join("decoder/1#0", 3);
  const auto owed = positions(consumer.grants["decoder/0#0"]);
  feed.producer_gone("decoder/0#0");
  for (int i = 0; i < 3; ++i) consumer.deliver(feed, "decoder/1#0");
  EXPECT_EQ(positions(consumer.grants["decoder/1#0"]), owed);
  EXPECT_EQ(feed.stats().reissued, 3);
}

TEST_F(FeedTest, ForgetsWhatAnOlderFenceBrought) {
  begin();
  join("decoder/0#0", 2);
  consumer.deliver(feed, "decoder/0#0");     // position 4 under fence 1
  feed.start(2, 0, 0);
  EXPECT_EQ(feed.stats().ready, 0);
  // 5 and 6 were granted under fence 1: they come back late, and their slots with them.
  consumer.deliver(feed, "decoder/0#0");
  consumer.deliver(feed, "decoder/0#0");
  EXPECT_EQ(feed.stats().stale, 2);
  EXPECT_THAT(positions(consumer.grants["decoder/0#0"]), ElementsAre(4, 5));
  EXPECT_EQ(feed.stats().free_slots, 4);
}

TEST_F(FeedTest, ResumesAtTheGivenStep) {
  begin(0, 2);
  join("decoder/0#0", 10);
  EXPECT_THAT(positions(consumer.grants["decoder/0#0"]), ElementsAre(20, 21, 22, 23));
}

TEST_F(FeedTest, FetchesHeldOutSamplesFirstAndKeepsThem) {
  begin(2);
  join("decoder/0#0", 3);
  ASSERT_EQ(consumer.grants["decoder/0#0"].front().stream, Stream::eval);
  consumer.deliver(feed, "decoder/0#0");
  consumer.deliver(feed, "decoder/0#0");
  auto sample = feed.take_eval(1, 1s);
  ASSERT_TRUE(sample);
  EXPECT_EQ(sample->position, 1);
  feed.start(2, 0, 2);
  EXPECT_TRUE(feed.take_eval(0, 1s)) << "kept over epochs";
}

TEST_F(FeedTest, DeliversVoidItemsWithTheirReason) {
  begin();
  join("decoder/0#0", 2);
  consumer.deliver(feed, "decoder/0#0", "bad.mp4: truncated");
  consumer.deliver(feed, "decoder/0#0");
  auto taken = feed.take(0, 0, 1s);
  ASSERT_TRUE(taken);
  EXPECT_EQ((*taken)[0].void_reason, "bad.mp4: truncated");
  EXPECT_TRUE((*taken)[0].bytes.empty());
}

TEST_F(FeedTest, SaysWhoIsWaitedForWhenTheDeadlinePasses) {
  begin();
  join("decoder/0#0", 1);
  auto taken = feed.take(0, 0, 20ms);
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().code(), Errc::deadline_exceeded);
  EXPECT_THAT(taken.error().message(), ::testing::HasSubstr("position 4, owed by decoder/0#0"));
}

TEST_F(FeedTest, CancelWakesAWaitingLearner) {
  begin();
  std::thread canceller([&] { feed.cancel("a peer died"); });
  auto taken = feed.take(0, 0, 60s);
  canceller.join();
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().code(), Errc::aborted);
}

TEST_F(FeedTest, ReportsAProducerThatHoldsAnItemTooLong) {
  Feed impatient({.order = options.order, .total_steps = 3, .item_deadline = 1ms}, [this](const std::string& producer, std::int64_t) {
    stuck.push_back(producer);
  });
  impatient.set_consumer(&consumer);
  impatient.start(1, 0, 0);
  impatient.callbacks().on_producer("decoder/0#0", 2);
  EXPECT_FALSE(impatient.take(0, 0, 100ms));
  EXPECT_THAT(stuck, ElementsAre("decoder/0#0", "decoder/0#0")) << "once for each item it holds";
}

TEST(RankOrderTest, RanksTogetherCoverEachStepExactlyOnce) {
  for (const std::int64_t world : {1, 2, 3}) {
    std::vector<int> seen(12 * 4, 0);
    for (std::int64_t rank = 0; rank < world; ++rank) {
      const RankOrder order{.global_batch = 12, .micro_batch = 2, .accumulation = 12 / (2 * world), .rank = rank};
      for (std::int64_t item = 0; item < 4 * order.items_per_step(); ++item) ++seen[static_cast<std::size_t>(order.position_of_item(item))];
    }
    EXPECT_THAT(seen, ::testing::Each(1)) << world;
  }
}

}  // namespace
}  // namespace troupe
