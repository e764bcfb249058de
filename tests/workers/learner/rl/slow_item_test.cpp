// Items that take long and items that stand still, with a job's default deadlines, on a scripted clock.
#include <gmock/gmock.h>

#include <array>
#include <condition_variable>
#include <mutex>
#include <optional>
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

/// Stands still until it is moved, and counts how often the watched thread has looked at it.
class WatchedClock final : public base::Clock {
 public:
  std::chrono::steady_clock::time_point now() const override {
    const std::lock_guard lock(mutex_);
    if (std::this_thread::get_id() == watched_) ++looks_, looked_.notify_all();
    return now_;
  }
  double wall_seconds() const override { return 0; }
  void advance(std::chrono::milliseconds by) {
    const std::lock_guard lock(mutex_);
    now_ += by;
  }
  /// The calling thread is the watched one.
  void watch() {
    const std::lock_guard lock(mutex_);
    watched_ = std::this_thread::get_id();
  }
  void count_anew() {
    const std::lock_guard lock(mutex_);
    looks_ = 0;
  }
  bool wait_for_looks(int looks) const {
    std::unique_lock lock(mutex_);
    return looked_.wait_for(lock, kTestDeadline, [&] { return looks_ >= looks; });
  }

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable looked_;
  mutable int looks_ = 0;
  std::thread::id watched_;
  std::chrono::steady_clock::time_point now_{};
};

/// A rollout worker as the learner sees it: an end of its channel, and the orders that it holds.
struct Worker {
  std::unique_ptr<ChannelProducer> end;
  std::vector<Credit> orders;
};

/// A learner that waits for rounds of two blocks, of which two may be made ahead; the test is its rollout workers.
class SlowItemTest : public ::testing::Test {
 protected:
  void SetUp() override {
    JobConfig job;
    job.job.kind = JobKind::rl;
    job.env.num_envs = 4;
    job.env.blocks = 2;
    job.rollout.epochs = 2;
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
    TrajectoryLayout layout;
    layout.fixed_bytes = sizeof(std::int64_t);
    collector_ = std::make_unique<RoundCollector>(rl_collector_options(job), layout, *feed_);
    TrainerSession session;
    session.plan.fence = 1;
    session.plan.world = 1;
    session.step_timeout = to_milliseconds(job.training.step_timeout);
    collector_->begin(session, 0);
  }
  void TearDown() override {
    feed_->cancel("the test is over");
    if (learner_.joinable()) learner_.join();
  }

  /// A rollout worker dials in, which holds `capacity` orders at once and is given `orders` of them.
  Worker hire(const std::string& name, std::uint32_t capacity, std::size_t orders) {
    Worker worker{.end = open_producer(nullptr, consumer_->address(), name, capacity, kTestDeadline).value(),
                  .orders = {}};
    for (std::size_t i = 0; i < orders; ++i) next_order(worker);
    return worker;
  }
  void next_order(Worker& worker) { worker.orders.push_back(worker.end->next_credit(kTestDeadline).value()); }
  /// The learner begins to wait for round 0, and when it has it for round 1.
  void begin_to_learn() {
    learner_ = std::thread([this] {
      clock_.watch();
      for (std::int64_t round = 0; round < 2; ++round) {
        double stall = 0;
        auto taken = collector_->take(round, stall);
        const std::lock_guard lock(mutex_);
        error_ = taken ? std::nullopt : std::optional(taken.error());
        if (taken) items_.push_back(taken->size());
        changed_.notify_all();
        if (error_) return;
      }
    });
    // one look as the wait begins, one before it sleeps
    ASSERT_TRUE(clock_.wait_for_looks(2));
  }

  static void deliver(Worker& worker, std::size_t order) {
    const Credit& credit = worker.orders.at(order);
    ASSERT_TRUE(worker.end->send(make_item(credit, worker.end->slot(credit), std::size_t{8})));
  }
  /// The learner, woken by a sign of life, looks for stuck items and then at its deadline.
  void go_on(Worker& worker, std::size_t order) {
    clock_.count_anew();
    worker.end->progress(worker.orders.at(order));
    ASSERT_TRUE(clock_.wait_for_looks(2));
  }
  void pass(std::chrono::milliseconds time, Worker& worker, std::size_t order) {
    clock_.advance(time);
    go_on(worker, order);
  }
  /// So often 10 s pass, and the worker goes on with both items of round 0.
  void make_slowly(Worker& worker, int steps) {
    for (int step = 0; step < steps; ++step) {
      pass(10s, worker, 0);
      go_on(worker, 1);
    }
  }
  /// Round 0, until the learner has it.
  void deliver_round(Worker& worker) {
    deliver(worker, 0);
    deliver(worker, 1);
    ASSERT_TRUE(wait_for_rounds(1));
  }
  /// Of which worker and position the feed has said that they are stuck.
  std::vector<std::string> stuck() {
    const std::lock_guard lock(mutex_);
    return stuck_;
  }
  /// What ended the learner's wait; empty: nothing has.
  std::string error() {
    const std::lock_guard lock(mutex_);
    return error_ ? error_->message() : "";
  }
  bool wait_for_rounds(std::size_t rounds) {
    return wait_for([&] { return items_.size() >= rounds || error_; });
  }
  bool wait_for_stuck() {
    return wait_for([&] { return !stuck_.empty(); });
  }
  bool wait_for_error() {
    return wait_for([&] { return error_.has_value(); });
  }

  WatchedClock clock_;
  std::unique_ptr<Feed> feed_;

 private:
  template <class IsTrue>
  bool wait_for(IsTrue is_true) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kTestDeadline, is_true);
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_; sizes of the rounds that the learner has.
  std::vector<std::string> stuck_;
  std::vector<std::size_t> items_;
  std::optional<Error> error_;
  std::unique_ptr<ChannelConsumer> consumer_;
  std::unique_ptr<RoundCollector> collector_;
  std::thread learner_;
};

TEST_F(SlowItemTest, AnItemOfThreeHundredSecondsCompletes) {
  Worker worker = hire("rollout/0#0", 4, 4);
  begin_to_learn();
  make_slowly(worker, 30);
  deliver_round(worker);
  EXPECT_EQ(error(), "");
  EXPECT_THAT(stuck(), ElementsAre());
}

TEST_F(SlowItemTest, AnItemWithoutAPolicyStepForItsDeadlineIsStuck) {
  Worker worker = hire("rollout/0#0", 4, 4);
  begin_to_learn();
  make_slowly(worker, 20);
  pass(119s, worker, 1);
  EXPECT_THAT(stuck(), ElementsAre());
  pass(2s, worker, 1);
  ASSERT_TRUE(wait_for_stuck());
  EXPECT_THAT(stuck(), ElementsAre("rollout/0#0 at 0"));
}

TEST_F(SlowItemTest, AStuckItemThatNobodyElseMakesEndsTheWait) {
  Worker worker = hire("rollout/0#0", 4, 4);
  begin_to_learn();
  pass(100s, worker, 0);
  pass(239s, worker, 1);
  // that it looks again shows that the wait did not end
  pass(0s, worker, 1);
  EXPECT_EQ(error(), "");
  clock_.advance(2s);
  worker.end->progress(worker.orders[1]);
  ASSERT_TRUE(wait_for_error());
  EXPECT_THAT(error(), HasSubstr("waited 240000 ms for training position 0, owed by rollout/0#0"));
}

TEST_F(SlowItemTest, AnotherWorkerMayBeginTheLongItemOfALostOne) {
  Worker lost = hire("rollout/0#0", 4, 4);
  begin_to_learn();
  make_slowly(lost, 30);
  clock_.count_anew();
  feed_->producer_gone("rollout/0#0");
  ASSERT_TRUE(clock_.wait_for_looks(2));
  EXPECT_EQ(error(), "");
  clock_.advance(200s);
  Worker other = hire("rollout/1#0", 4, 4);
  pass(100s, other, 0);
  deliver_round(other);
  EXPECT_EQ(error(), "");
  EXPECT_THAT(stuck(), ElementsAre());
}

TEST_F(SlowItemTest, ALostItemThatNobodyTakesUpEndsTheWait) {
  Worker lost = hire("rollout/0#0", 4, 4);
  begin_to_learn();
  for (int step = 0; step < 30; ++step) pass(10s, lost, 0);
  clock_.advance(241s);
  feed_->producer_gone("rollout/0#0");
  clock_.advance(241s);
  feed_->producer_gone("rollout/9#0");  // wakes it
  ASSERT_TRUE(wait_for_error());
  EXPECT_THAT(error(), HasSubstr("waited 240000 ms for training position 0, owed by nobody"));
}

TEST_F(SlowItemTest, AnItemWaitsAsLongAsItsWorkerGoesOnWithAnother) {
  Worker lost = hire("rollout/0#0", 1, 1);
  Worker busy = hire("rollout/1#0", 1, 1);
  begin_to_learn();
  for (int step = 0; step < 20; ++step) {
    pass(10s, lost, 0);
    go_on(busy, 0);
  }
  clock_.count_anew();
  feed_->producer_gone("rollout/0#0");
  ASSERT_TRUE(clock_.wait_for_looks(2));
  for (int step = 0; step < 30; ++step) pass(10s, busy, 0);
  EXPECT_EQ(error(), "");
  deliver(busy, 0);
  next_order(busy);
  EXPECT_EQ(SampleKey::of(busy.orders[1].tag).position, 0);
  deliver(busy, 1);
  ASSERT_TRUE(wait_for_rounds(1));
  EXPECT_EQ(error(), "");
}

TEST_F(SlowItemTest, AnOrderMadeAheadIsNotStuckWhenItsRoundBegins) {
  Worker worker = hire("rollout/0#0", 4, 4);
  begin_to_learn();
  make_slowly(worker, 30);
  deliver_round(worker);
  // the first may be over before the learner waits, and is looked at during the second or third
  for (int sign = 0; sign < 3; ++sign) go_on(worker, 3);
  EXPECT_THAT(stuck(), ElementsAre());
  pass(121s, worker, 3);
  ASSERT_TRUE(wait_for_stuck());
  EXPECT_THAT(stuck(), ElementsAre("rollout/0#0 at 2"));
}

}  // namespace
}  // namespace troupe::workers
