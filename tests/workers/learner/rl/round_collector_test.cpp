#include "workers/learner/rl/round_collector.h"

#include <gmock/gmock.h>

#include <cstring>

#include "base/hash.h"
#include "workers/rollout/trajectory_request.h"

namespace troupe::workers {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;

constexpr auto kPatience = 20s;

/// Two blocks, one learner; the test is the only rollout worker, over a channel in this process.
class RoundCollectorTest : public ::testing::Test {
 protected:
  void TearDown() override {
    producer_.reset();
    consumer_.reset();
  }
  /// A group begins at `version`.
  RoundCollector& begin(std::int64_t staleness, std::int64_t version, std::int64_t rounds_per_version = 1,
                        bool is_exact = true) {
    RlShape shape;
    shape.blocks = 2;
    Feed::Options options{.order = {.global_batch = 2, .micro_batch = 1, .accumulation = 2, .rank = 0},
                          .total_steps = kRounds,
                          .item_deadline = 60s,
                          .lanes = 2};
    feed_ = std::make_unique<Feed>(options, Feed::OnStuck());
    auto opened =
        open_consumer(nullptr, {.name = "learner/0#0", .slots = 32, .slot_bytes = 64, .transport = Transport::inproc},
                      feed_->callbacks());
    if (!opened) throw std::runtime_error(opened.error().message());
    consumer_ = std::move(*opened);
    feed_->set_consumer(consumer_.get());
    TrajectoryLayout layout;
    layout.fixed_bytes = sizeof(std::int64_t);
    collector_ = std::make_unique<RoundCollector>(RoundCollector::Options{.shape = shape,
                                                                          .staleness = staleness,
                                                                          .exact = is_exact,
                                                                          .rounds_per_version = rounds_per_version,
                                                                          .total_rounds = kRounds},
                                                  layout, *feed_);
    TrainerSession session;
    session.plan.fence = 3;
    session.plan.world = 1;
    session.step_timeout = kPatience;
    collector_->begin(session, version);
    auto dialled = open_producer(nullptr, consumer_->address(), "rollout/0#0", 32, kPatience);
    if (!dialled) throw std::runtime_error(dialled.error().message());
    producer_ = std::move(*dialled);
    return *collector_;
  }
  struct Asked {
    std::int64_t round = 0;
    TrajectoryRequest request;
    bool operator==(const Asked& other) const {
      return round == other.round && request.version == other.request.version && request.exact == other.request.exact;
    }
    friend std::ostream& operator<<(std::ostream& out, const Asked& asked) {
      return out << "round " << asked.round << " of version " << asked.request.version
                 << (asked.request.exact ? " exactly" : "");
    }
  };
  /// What was asked for since the last call, of block 0; a credit's request is read and the item made, with its
  /// position in it.
  std::vector<Asked> serve(const std::string& error = {}, std::size_t more_bytes = 0) {
    std::vector<Asked> asked;
    // credits of an inproc channel are there as soon as they are granted
    while (const auto credit = producer_->next_credit(0ms)) {
      const auto request = decode_trajectory_request(producer_->slot(*credit).first(credit->request_bytes));
      const std::int64_t position = SampleKey::of(credit->tag).position;
      if (position % 2 == 0) asked.push_back({position / 2, *request});
      const auto bytes = producer_->slot(*credit).first(sizeof position + more_bytes);
      std::memcpy(bytes.data(), &position, sizeof position);
      EXPECT_TRUE(producer_->send(
          {.credit = *credit, .bytes = error.empty() ? bytes.size() : 0, .xxh3 = xxh3_64(bytes), .error = error}));
    }
    return asked;
  }
  static Asked exactly(std::int64_t round, std::int64_t version) {
    return {round, {.version = version, .exact = true}};
  }

  static constexpr std::int64_t kRounds = 8;
  std::unique_ptr<Feed> feed_;
  std::unique_ptr<ChannelConsumer> consumer_;
  std::unique_ptr<RoundCollector> collector_;
  std::unique_ptr<ChannelProducer> producer_;
  double stall_ = 0;
};

TEST_F(RoundCollectorTest, WithoutStalenessARoundWaitsForItsOwnVersion) {
  RoundCollector& collector = begin(0, 0);
  EXPECT_THAT(serve(), ElementsAre(exactly(0, 0)));
  ASSERT_TRUE(collector.take(0, stall_));
  EXPECT_THAT(serve(), ElementsAre());
  collector.allow(1);
  EXPECT_THAT(serve(), ElementsAre(exactly(1, 1)));
}

TEST_F(RoundCollectorTest, WithStalenessOneTheNextRoundIsCollectedMeanwhile) {
  RoundCollector& collector = begin(1, 0);
  EXPECT_THAT(serve(), ElementsAre(exactly(0, 0), exactly(1, 0)));
  ASSERT_TRUE(collector.take(0, stall_));
  EXPECT_THAT(serve(), ElementsAre());
  collector.allow(1);
  EXPECT_THAT(serve(), ElementsAre(exactly(2, 1)));
}

TEST_F(RoundCollectorTest, WithStalenessTwoTwoRoundsAreAheadAndNoMore) {
  RoundCollector& collector = begin(2, 0);
  EXPECT_THAT(serve(), ElementsAre(exactly(0, 0), exactly(1, 0), exactly(2, 0)));
  ASSERT_TRUE(collector.take(0, stall_));
  collector.allow(1);
  EXPECT_THAT(serve(), ElementsAre(exactly(3, 1)));
  ASSERT_TRUE(collector.take(1, stall_));
  collector.allow(2);
  EXPECT_THAT(serve(), ElementsAre(exactly(4, 2)));
}

TEST_F(RoundCollectorTest, AllRoundsOfAnIterationAreOfOneVersion) {
  RoundCollector& collector = begin(0, 0, 2);
  EXPECT_THAT(serve(), ElementsAre(exactly(0, 0), exactly(1, 0)));
  ASSERT_TRUE(collector.take(0, stall_));
  ASSERT_TRUE(collector.take(1, stall_));
  collector.allow(1);
  EXPECT_THAT(serve(), ElementsAre(exactly(2, 1), exactly(3, 1)));
}

TEST_F(RoundCollectorTest, AResumedGroupAsksForNoVersionBeforeItsOwn) {
  begin(2, 3);
  EXPECT_THAT(serve(), ElementsAre(exactly(3, 3), exactly(4, 3), exactly(5, 3)));
}

TEST_F(RoundCollectorTest, NothingIsAskedForBehindTheLastRound) {
  begin(2, 6);
  EXPECT_THAT(serve(), ElementsAre(exactly(6, 6), exactly(7, 6)));
}

TEST_F(RoundCollectorTest, NewerWeightsMayActWhereExactnessIsNotAskedFor) {
  begin(0, 0, 1, false);
  EXPECT_THAT(serve(), ElementsAre(Asked{0, {.version = 0, .exact = false}}));
}

TEST_F(RoundCollectorTest, ARoundsItemsComeCopiedInOrderOfPosition) {
  RoundCollector& collector = begin(1, 0);
  serve();
  auto round = collector.take(0, stall_);
  collector.allow(1);
  serve();  // may fill the slots again
  ASSERT_EQ(round->size(), 2u);
  for (std::int64_t block = 0; block < 2; ++block) {
    const CollectedItem& item = (*round)[static_cast<std::size_t>(block)];
    std::int64_t stored = -1;
    std::memcpy(&stored, item.bytes.data(), sizeof stored);
    EXPECT_EQ(item.position, block);
    EXPECT_EQ(stored, block);
    EXPECT_EQ(item.xxh3, xxh3_64(std::span<const std::byte>(item.bytes)));
  }
}

TEST_F(RoundCollectorTest, AnItemThatCouldNotBeMadeIsAnErrorWithItsReason) {
  RoundCollector& collector = begin(0, 0);
  serve("the environment cannot be made: no display");
  const auto round = collector.take(0, stall_);
  EXPECT_EQ(round.error().code(), Errc::failed_precondition);
  EXPECT_THAT(round.error().message(), ::testing::HasSubstr("no display"));
  EXPECT_THAT(round.error().message(), ::testing::HasSubstr("block 0"));
}

TEST_F(RoundCollectorTest, AnItemOfAnotherSizeThanItsLayoutIsRefused) {
  RoundCollector& collector = begin(0, 0);
  serve({}, 8);
  const auto round = collector.take(0, stall_);
  EXPECT_EQ(round.error().code(), Errc::data_loss);
  EXPECT_THAT(round.error().message(), ::testing::HasSubstr("trajectory 0: 16 bytes; the job's"));
}

}  // namespace
}  // namespace troupe::workers
