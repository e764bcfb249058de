#include "workers/stream/feed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <thread>

#include "tests/workers/stream/fake_consumer.h"

namespace troupe::workers {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;

std::vector<std::int64_t> positions(const std::deque<Credit>& credits) {
  std::vector<std::int64_t> found;
  for (const Credit& credit : credits) found.push_back(position_of(credit));
  return found;
}

struct FeedTest : ::testing::Test {
  // Rank 1 of 2, global batch 8, micro-batches of 2, accumulation 2: step 0 is positions 4..7, step 1 is 12..15.
  Feed::Options options{.order = {.global_batch = 8, .micro_batch = 2, .accumulation = 2, .rank = 1},
                        .total_steps = 3,
                        .item_deadline = 60s};
  FakeConsumer consumer{6};
  std::vector<std::string> stuck;
  std::vector<std::int64_t> quarantined;
  std::vector<std::string> dead;
  Feed feed{options, [this](const std::string& producer, std::int64_t) { stuck.push_back(producer); },
            [this](SampleKey key, const std::vector<std::string>& producers, const std::string&) {
              quarantined.push_back(key.position);
              dead = producers;
            }};

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

TEST_F(FeedTest, AnUnkillableProducerKeepsItsSlotsWhileOthersMakeWhatItOwed) {
  begin();
  join("decoder/0#0", 3);
  join("decoder/1#0", 3);
  const auto owed = positions(consumer.grants["decoder/0#0"]);
  feed.producer_unkillable("decoder/0#0");
  EXPECT_EQ(feed.stats().free_slots, 0);
  EXPECT_EQ(feed.stats().producers, 1);
  for (int i = 0; i < 3; ++i) consumer.deliver(feed, "decoder/1#0");
  EXPECT_EQ(positions(consumer.grants["decoder/1#0"]), owed);
  // its end is confirmed after all
  feed.producer_gone("decoder/0#0");
  EXPECT_EQ(feed.stats().free_slots, 3);
}

TEST_F(FeedTest, TheOldestPositionIsMadeAlsoWhereAnUnkillableProducerHoldsTheLastSlots) {
  begin();
  join("decoder/0#0", 2);
  join("decoder/1#0", 4);
  EXPECT_THAT(positions(consumer.grants["decoder/1#0"]), ElementsAre(6, 7, 12, 13));
  feed.producer_unkillable("decoder/0#0");
  for (int i = 0; i < 4; ++i) consumer.deliver(feed, "decoder/1#0");
  // what came is given up for what is missing before it, and asked again
  EXPECT_THAT(positions(consumer.grants["decoder/1#0"]), ElementsAre(4, 5, 6, 7));
  for (int i = 0; i < 4; ++i) consumer.deliver(feed, "decoder/1#0");
  ASSERT_TRUE(feed.take(0, 0, 1s));
  ASSERT_TRUE(feed.take(0, 1, 1s));
  feed.release(0);
  EXPECT_THAT(positions(consumer.grants["decoder/1#0"]), ElementsAre(12, 13, 14, 15));
}

TEST_F(FeedTest, AnItemThatIsUnderWayWhenItsProducerIsLostIsAskedOfAnotherAndFreesItsSlot) {
  begin();
  join("decoder/0#0", 1);
  // The channel has taken the item in; its callback comes after the loss.
  const Credit credit = consumer.grants["decoder/0#0"].front();
  consumer.grants["decoder/0#0"].clear();
  feed.producer_gone("decoder/0#0");
  EXPECT_EQ(feed.stats().free_slots, 5);
  join("decoder/1#0", 1);
  EXPECT_THAT(positions(consumer.grants["decoder/1#0"]), ElementsAre(4));
  feed.callbacks().on_item("decoder/0#0", Item{.credit = credit, .bytes = 8, .xxh3 = 1});
  EXPECT_EQ(feed.stats().ready, 0);
  EXPECT_EQ(feed.stats().free_slots, 5);
}

TEST_F(FeedTest, ASampleOfWhichTwoProducersDiedIsBadAndIsNotAskedForAgain) {
  begin();
  join("decoder/0#0", 2);
  feed.producer_gone("decoder/0#0", true);  // it was making 4, and 5 came next
  join("decoder/0#1", 2);
  EXPECT_THAT(positions(consumer.grants["decoder/0#1"]), ElementsAre(4, 5));
  EXPECT_THAT(quarantined, ElementsAre());
  feed.producer_gone("decoder/0#1", true);
  EXPECT_THAT(quarantined, ElementsAre(4));
  EXPECT_THAT(dead, ElementsAre("decoder/0#0", "decoder/0#1"));
  join("decoder/0#2", 1);
  EXPECT_THAT(positions(consumer.grants["decoder/0#2"]), ElementsAre(5)) << "which nobody was making";
  consumer.deliver(feed, "decoder/0#2");
  const auto samples = feed.take(0, 0, 1s).value();
  EXPECT_TRUE(samples[0].quarantined);
  EXPECT_EQ(samples[0].void_reason, "decoder/0#0 and decoder/0#1 died while they made it; it is not asked for again");
  EXPECT_TRUE(samples[0].bytes.empty());
  EXPECT_FALSE(samples[1].quarantined);
  feed.release(0);
  EXPECT_EQ(feed.stats().free_slots, 5) << "it has no slot";
}

TEST_F(FeedTest, OfSeveralThatWereMadeAtATimeTheOneThatKillsIsFound) {
  begin();
  join("encoder/0#0", 4);
  EXPECT_THAT(positions(consumer.grants["encoder/0#0"]), ElementsAre(4, 5, 6, 7));
  feed.producer_gone("encoder/0#0", true);  // it was making 4, 5 and 6, of which 5 ends it
  join("encoder/0#1", 4);
  EXPECT_THAT(positions(consumer.grants["encoder/0#1"]), ElementsAre(4)) << "alone";
  consumer.deliver(feed, "encoder/0#1");
  EXPECT_THAT(positions(consumer.grants["encoder/0#1"]), ElementsAre(5)) << "alone";
  feed.producer_gone("encoder/0#1", true);
  EXPECT_THAT(quarantined, ElementsAre(5));
  EXPECT_THAT(dead, ElementsAre("encoder/0#0", "encoder/0#1"));
  join("encoder/0#2", 4);
  EXPECT_THAT(positions(consumer.grants["encoder/0#2"]), ElementsAre(6)) << "still a suspect";
  consumer.deliver(feed, "encoder/0#2");
  EXPECT_THAT(positions(consumer.grants["encoder/0#2"]), ElementsAre(7, 12, 13, 14)) << "as before";
  EXPECT_EQ(feed.take(0, 0, 1s).value()[1].void_reason,
            "encoder/0#0 and encoder/0#1 died while they made it; it is not asked for again");
}

TEST_F(FeedTest, ASuspectWaitsForAProducerThatOwesNothing) {
  begin();
  join("encoder/0#0", 3);
  feed.producer_gone("encoder/0#0", true);  // 4 and 5 are suspects, 6 is none
  join("encoder/1#0", 3);
  join("encoder/2#0", 3);
  EXPECT_THAT(positions(consumer.grants["encoder/1#0"]), ElementsAre(4));
  EXPECT_THAT(positions(consumer.grants["encoder/2#0"]), ElementsAre(5));
  consumer.deliver(feed, "encoder/1#0");
  EXPECT_THAT(positions(consumer.grants["encoder/1#0"]), ElementsAre(6, 7, 12));
  EXPECT_EQ(consumer.grants["encoder/2#0"].size(), 1u) << "alone until it is made";
  consumer.deliver(feed, "encoder/2#0");
  EXPECT_THAT(positions(consumer.grants["encoder/2#0"]), ElementsAre(13));
}

TEST_F(FeedTest, ASampleStaysInQuarantineWhenTheGroupFormsAgain) {
  begin(1);
  for (const char* producer : {"decoder/0#0", "decoder/1#0"}) {
    join(producer, 1);  // the held-out sample comes first
    feed.producer_gone(producer, true);
  }
  EXPECT_TRUE(feed.take_eval(0, 1s).value().quarantined);
  for (const char* producer : {"decoder/0#1", "decoder/0#2"}) {
    join(producer, 1);
    feed.producer_gone(producer, true);
  }
  EXPECT_THAT(quarantined, ElementsAre(0, 4));
  feed.start(2, 0, 1);
  join("decoder/0#3", 1);
  EXPECT_THAT(positions(consumer.grants["decoder/0#3"]), ElementsAre(5));
  consumer.deliver(feed, "decoder/0#3");
  EXPECT_TRUE(feed.take(0, 0, 1s).value()[0].quarantined);
}

TEST_F(FeedTest, ProducersThatWereToldToEndSpeakAgainstNoSample) {
  begin();
  for (const char* producer : {"decoder/0#0", "decoder/0#1", "decoder/0#2"}) {
    join(producer, 1);
    feed.producer_gone(producer);
  }
  EXPECT_THAT(quarantined, ElementsAre());
  // one death of each of two samples is none that two died of
  for (const char* producer : {"decoder/0#3", "decoder/0#4"}) {
    join(producer, 1);
    feed.producer_gone(producer, producer == std::string("decoder/0#3"));
  }
  EXPECT_THAT(quarantined, ElementsAre());
}

TEST_F(FeedTest, ForgetsWhatAnOlderFenceBrought) {
  begin();
  join("decoder/0#0", 2);
  consumer.deliver(feed, "decoder/0#0");  // position 4 under fence 1
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
  ASSERT_EQ(SampleKey::of(consumer.grants["decoder/0#0"].front().tag), (SampleKey{Split::eval, 0}));
  consumer.deliver(feed, "decoder/0#0");
  consumer.deliver(feed, "decoder/0#0");
  auto sample = feed.take_eval(1, 1s);
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
  EXPECT_EQ((*taken)[0].void_reason, "bad.mp4: truncated");
  EXPECT_TRUE((*taken)[0].bytes.empty());
}

TEST_F(FeedTest, SaysWhoIsWaitedForWhenTheDeadlinePasses) {
  begin();
  join("decoder/0#0", 1);
  auto taken = feed.take(0, 0, 20ms);
  EXPECT_EQ(taken.error().code(), Errc::deadline_exceeded);
  EXPECT_THAT(taken.error().message(), ::testing::HasSubstr("position 4, owed by decoder/0#0"));
}

TEST_F(FeedTest, ADeadlineCountsFromWhenSomebodyBeganToWait) {
  base::FakeClock clock;
  Feed late({.order = options.order, .total_steps = 3, .item_deadline = 60s, .clock = &clock}, Feed::OnStuck());
  late.set_consumer(&consumer);
  late.start(1, 0, 0);
  late.callbacks().on_producer("decoder/0#0", 1);
  const auto began = clock.now();
  clock.advance(60s);
  auto taken = late.take(0, 0, 60s, began);
  EXPECT_EQ(taken.error().code(), Errc::deadline_exceeded);
  EXPECT_THAT(taken.error().message(), ::testing::HasSubstr("waited 60000 ms for training position 4"));
}

TEST_F(FeedTest, CancelWakesAWaitingLearner) {
  begin();
  std::thread canceller([&] { feed.cancel("a peer died"); });
  auto taken = feed.take(0, 0, 60s);
  canceller.join();
  EXPECT_EQ(taken.error().code(), Errc::aborted);
}

TEST_F(FeedTest, ReportsAProducerThatHoldsAnItemTooLong) {
  Feed impatient({.order = options.order, .total_steps = 3, .item_deadline = 1ms},
                 [this](const std::string& producer, std::int64_t) { stuck.push_back(producer); });
  impatient.set_consumer(&consumer);
  impatient.start(1, 0, 0);
  impatient.callbacks().on_producer("decoder/0#0", 2);
  EXPECT_FALSE(impatient.take(0, 0, 100ms));
  EXPECT_THAT(stuck, ElementsAre("decoder/0#0", "decoder/0#0")) << "once for each item it holds";
}

TEST_F(FeedTest, ProgressOfAnOlderGroupOrOfAnotherProducerMovesNoDeadline) {
  base::FakeClock clock;
  Feed watched({.order = options.order, .total_steps = 3, .item_deadline = 60s, .clock = &clock}, Feed::OnStuck());
  watched.set_consumer(&consumer);
  watched.start(2, 0, 0);
  watched.callbacks().on_producer("rollout/0#0", 1);
  const Credit held = consumer.grants["rollout/0#0"].front();
  Credit old = held;
  old.fence = 1;
  const auto began = clock.now();
  clock.advance(100s);
  watched.callbacks().on_progress("rollout/0#0", old);
  watched.callbacks().on_progress("rollout/1#0", held);
  EXPECT_EQ(watched.take(0, 0, 100s, began).error().code(), Errc::deadline_exceeded);
}

/// Rank 0 of 1 over 4 blocks: a round is 4 positions, one a lane.
struct FeedLanesTest : ::testing::Test {
  Feed::Options options{.order = {.global_batch = 4, .micro_batch = 4, .accumulation = 1, .rank = 0},
                        .total_steps = 5,
                        .item_deadline = 60s,
                        .lanes = 4};
  FakeConsumer consumer{8};
  std::unique_ptr<Feed> feed;

  void begin(std::int64_t round = 0) {
    feed = std::make_unique<Feed>(options, Feed::OnStuck());
    feed->set_consumer(&consumer);
    feed->start(1, round, 0);
  }
  void join(const std::string& producer, std::uint32_t capacity = 100) {
    feed->callbacks().on_producer(producer, capacity);
  }
  void allow(std::int64_t end, const std::string& request) {
    const auto* bytes = reinterpret_cast<const std::byte*>(request.data());
    feed->allow(end, {bytes, bytes + request.size()});
  }
  std::vector<std::int64_t> granted(const std::string& producer) { return positions(consumer.grants[producer]); }
  void deliver_all(const std::string& producer) {
    while (!consumer.grants[producer].empty()) consumer.deliver(*feed, producer);
  }
  /// All deliver what they owe, and the round is released.
  void finish_round(std::int64_t round) {
    for (const char* producer : {"a", "b", "c"}) deliver_all(producer);
    ASSERT_TRUE(feed->take(round, 0, 1s));
    feed->release(round);
  }
};

TEST_F(FeedLanesTest, GrantsNothingBeforeItIsAllowedAndNothingBehindTheLimit) {
  begin();
  join("a");
  EXPECT_THAT(granted("a"), ElementsAre());
  allow(3, "v0");
  EXPECT_THAT(granted("a"), ElementsAre(0, 1, 2));
  allow(5, "v1");
  EXPECT_THAT(granted("a"), ElementsAre(0, 1, 2, 3, 4));
  allow(2, "older");
  EXPECT_THAT(granted("a"), ElementsAre(0, 1, 2, 3, 4)) << "a limit never falls";
}

TEST_F(FeedLanesTest, EveryPositionCarriesTheRequestOfItsRange) {
  begin();
  join("a");
  allow(4, "v0");
  allow(6, "v1");
  EXPECT_EQ(consumer.requests[3], "v0");
  EXPECT_EQ(consumer.requests[4], "v1");
  join("b");
  feed->producer_gone("a");
  EXPECT_EQ(consumer.requests[3], "v0") << "and again when another makes it";
  EXPECT_THAT(granted("b"), ElementsAre(0, 1, 2, 3, 4, 5));
}

TEST_F(FeedLanesTest, ALaneStaysWithItsProducer) {
  options.await_producers = 2;
  begin();
  allow(4, "");
  join("a");
  EXPECT_THAT(granted("a"), ElementsAre()) << "another is awaited";
  join("b");
  const auto first = granted("b");
  ASSERT_EQ(first.size(), 2u);
  for (std::int64_t round = 0; round < 4; ++round) {
    std::vector<std::int64_t> lanes;
    for (const std::int64_t position : granted("b")) lanes.push_back(position % 4);
    EXPECT_EQ(lanes, first) << "round " << round;
    ASSERT_NO_FATAL_FAILURE(finish_round(round));
    allow(4 * (round + 2), "");
  }
}

TEST_F(FeedLanesTest, ANewProducerGetsItsShareAndNoMore) {
  begin();
  join("a");
  allow(4, "");
  ASSERT_NO_FATAL_FAILURE(finish_round(0));
  join("b");
  allow(8, "");
  EXPECT_EQ(granted("a").size(), 2u);
  EXPECT_EQ(granted("b").size(), 2u);
  ASSERT_NO_FATAL_FAILURE(finish_round(1));
  join("c");
  allow(12, "");
  EXPECT_EQ(granted("c").size(), 1u);
}

TEST_F(FeedLanesTest, ABusyProducersLanesWaitForIt) {
  begin();
  join("a", 1);
  allow(8, "");
  EXPECT_THAT(granted("a"), ElementsAre(0));
  consumer.deliver(*feed, "a");
  EXPECT_THAT(granted("a"), ElementsAre(1));
}

TEST_F(FeedLanesTest, ResumesAtTheGivenRoundAndForgetsWhatWasAllowed) {
  begin();
  join("a");
  allow(8, "old");
  deliver_all("a");
  feed->start(2, 3, 0);
  EXPECT_THAT(granted("a"), ElementsAre());
  allow(16, "new");
  EXPECT_THAT(granted("a"), ElementsAre(12, 13, 14, 15));
  EXPECT_EQ(consumer.requests[12], "new");
}

TEST_F(FeedLanesTest, SaysThatAPositionIsNotAllowedYet) {
  begin();
  join("a");
  allow(2, "");
  deliver_all("a");
  const auto taken = feed->take(0, 0, 10ms);
  EXPECT_THAT(taken.error().message(),
              ::testing::HasSubstr("position 2, owed by nobody: positions below 2 are allowed"));
}

TEST_F(FeedLanesTest, RanksShareALaneOnlyByItsNumber) {
  // Rank 1 of 2 over 4 blocks has lanes 2 and 3.
  options.order = {.global_batch = 4, .micro_batch = 2, .accumulation = 1, .rank = 1};
  begin();
  join("a");
  join("b");
  allow(8, "");
  EXPECT_THAT(granted("a"), ElementsAre(2, 6));
  EXPECT_THAT(granted("b"), ElementsAre(3, 7));
}

TEST(SampleKeyTest, ATagKeepsSplitAndPosition) {
  for (const Split split : {Split::train, Split::eval}) {
    for (const std::int64_t position : {std::int64_t{0}, std::int64_t{7}, std::numeric_limits<std::int64_t>::max()}) {
      EXPECT_EQ(SampleKey::of(SampleKey{split, position}.tag()), (SampleKey{split, position}));
    }
  }
}

TEST(RankOrderTest, RanksTogetherCoverEachStepExactlyOnce) {
  for (const std::int64_t world : {1, 2, 3}) {
    std::vector<int> seen(12 * 4, 0);
    for (std::int64_t rank = 0; rank < world; ++rank) {
      const RankOrder order{.global_batch = 12, .micro_batch = 2, .accumulation = 12 / (2 * world), .rank = rank};
      for (std::int64_t item = 0; item < 4 * order.items_per_step(); ++item)
        ++seen[static_cast<std::size_t>(order.position_of_item(item))];
    }
    EXPECT_THAT(seen, ::testing::Each(1)) << world;
  }
}

}  // namespace
}  // namespace troupe::workers
