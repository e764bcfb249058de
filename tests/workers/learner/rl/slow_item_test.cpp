// Items that take long and items that stand still, with a job's default deadlines, on a scripted clock.
#include <gmock/gmock.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "base/hash.h"
#include "workers/learner/rl/rl_trainer.h"
#include "workers/stream/producer_loop.h"

namespace troupe::workers {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kTestDeadline = 20s;

/// Stands still until it is moved, and knows when somebody else has looked at it since.
class WatchedClock final : public base::Clock {
 public:
  std::chrono::steady_clock::time_point now() const override {
    const std::lock_guard lock(mutex_);
    if (std::this_thread::get_id() != owner_) is_seen_ = true, seen_.notify_all();
    return now_;
  }
  double wall_seconds() const override { return 0; }
  void advance(std::chrono::milliseconds by) {
    const std::lock_guard lock(mutex_);
    now_ += by;
    is_seen_ = false;
  }
  bool wait_until_seen() const {
    std::unique_lock lock(mutex_);
    return seen_.wait_for(lock, kTestDeadline, [&] { return is_seen_; });
  }

 private:
  const std::thread::id owner_ = std::this_thread::get_id();
  mutable std::mutex mutex_;
  mutable std::condition_variable seen_;
  mutable bool is_seen_ = false;
  std::chrono::steady_clock::time_point now_{};
};

/// A learner that waits for round 0 of two blocks; the test is their rollout worker.
class SlowItemTest : public ::testing::Test {
 protected:
  void SetUp() override {
    JobConfig job;
    job.job.kind = JobKind::rl;
    job.env.num_envs = 4;
    job.env.blocks = 2;
    Feed::Options options = rl_feed_options(job, 0, 1, 1);
    options.clock = &clock_;
    feed_ = std::make_unique<Feed>(options, [this](const std::string& producer, std::int64_t position) {
      const std::lock_guard lock(mutex_);
      stuck_.push_back(producer + " at " + std::to_string(position));
      changed_.notify_all();
    });
    consumer_ =
        open_consumer(nullptr, {.name = "learner/0#0", .slots = 4, .slot_bytes = 64, .transport = Transport::inproc},
                      feed_->callbacks())
            .value();
    feed_->set_consumer(consumer_.get());
    collector_ = std::make_unique<RoundCollector>(rl_collector_options(job), TrajectoryLayout{}, *feed_);
    TrainerSession session;
    session.plan.fence = 1;
    session.plan.world = 1;
    session.step_timeout = to_milliseconds(job.training.step_timeout);
    collector_->begin(session, 0);
    producer_ = open_producer(nullptr, consumer_->address(), "rollout/0#0", 4, kTestDeadline).value();
    for (Credit& credit : credits_) credit = producer_->next_credit(kTestDeadline).value();
    learner_ = std::thread([this] {
      double stall = 0;
      auto taken = collector_->take(0, stall);
      const std::lock_guard lock(mutex_);
      taken_ = std::move(taken);
      stall_ = stall;
      changed_.notify_all();
    });
  }
  void TearDown() override {
    feed_->cancel("the test is over");
    learner_.join();
    producer_.reset();
    consumer_.reset();
  }

  void deliver(const Credit& credit) {
    ASSERT_TRUE(producer_->send(make_item(credit, producer_->slot(credit), std::size_t{8})));
  }
  /// Time passes, and the learner, woken by a sign of life of `credit`, looks at the clock.
  void pass(std::chrono::milliseconds time, const Credit& credit) {
    clock_.advance(time);
    producer_->progress(credit);
    ASSERT_TRUE(clock_.wait_until_seen());
  }
  template <class IsTrue>
  bool wait_for(IsTrue is_true) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kTestDeadline, is_true);
  }

  WatchedClock clock_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> stuck_;
  std::optional<Result<std::vector<CollectedItem>>> taken_;
  double stall_ = 0;
  std::unique_ptr<Feed> feed_;
  std::unique_ptr<ChannelConsumer> consumer_;
  std::unique_ptr<ChannelProducer> producer_;
  std::unique_ptr<RoundCollector> collector_;
  std::array<Credit, 2> credits_;
  std::thread learner_;
};

TEST_F(SlowItemTest, AnItemOfThreeHundredSecondsCompletes) {
  for (int step = 0; step < 30; ++step) {
    for (const Credit& credit : credits_) producer_->progress(credit);
    pass(10s, credits_[0]);
  }
  for (const Credit& credit : credits_) deliver(credit);
  ASSERT_TRUE(wait_for([&] { return taken_.has_value(); }));
  ASSERT_TRUE(*taken_) << taken_->error().message();
  EXPECT_EQ((*taken_)->size(), 2u);
  EXPECT_THAT(stuck_, ElementsAre());
}

TEST_F(SlowItemTest, AnItemWithoutAPolicyStepForItsDeadlineIsStuck) {
  for (int step = 0; step < 20; ++step) {
    for (const Credit& credit : credits_) producer_->progress(credit);
    pass(10s, credits_[0]);
  }
  pass(119s, credits_[1]);
  EXPECT_THAT(stuck_, ElementsAre());
  pass(2s, credits_[1]);
  ASSERT_TRUE(wait_for([&] { return !stuck_.empty(); }));
  EXPECT_THAT(stuck_, ElementsAre("rollout/0#0 at 0"));
}

TEST_F(SlowItemTest, AStuckItemThatNobodyElseMakesEndsTheWait) {
  pass(100s, credits_[0]);
  pass(239s, credits_[1]);
  EXPECT_FALSE(taken_.has_value());
  pass(2s, credits_[1]);
  ASSERT_TRUE(wait_for([&] { return taken_.has_value(); }));
  EXPECT_EQ(taken_->error().code(), Errc::deadline_exceeded);
  EXPECT_THAT(taken_->error().message(), HasSubstr("waited 240000 ms for training position 0, owed by rollout/0#0"));
}

}  // namespace
}  // namespace troupe::workers
