#include "workers/learner/batch_ahead.h"

#include <gmock/gmock.h>

#include <limits>
#include <set>
#include <stdexcept>
#include <utility>

#include "kernels/threads.h"

namespace troupe::workers {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using Place = BatchAhead::Place;
using MicroBatch = BatchAhead::MicroBatch;

/// What a feed and a task would do, as the test says.
class Script {
 public:
  Result<MicroBatch> make(const Place& place, BatchAhead::Clock::time_point since) {
    std::unique_lock lock(mutex_);
    EXPECT_FALSE(std::exchange(is_making_, true)) << "two at once";
    const Leaving leaving{is_making_};
    begun_.push_back(place.micro);
    threads_.push_back(std::this_thread::get_id());
    since_.push_back(since);
    changed_.notify_all();
    if (held_.count(place.micro) != 0) {
      EXPECT_TRUE(changed_.wait_for(lock, 20s, [&] { return cancelled_ || held_.count(place.micro) == 0; }));
    }
    if (cancelled_) return Error{Errc::aborted, "feed: cancelled"};
    if (throws_.count(place.micro) != 0) throw std::runtime_error("a shape is wrong");
    if (const auto failure = failures_.find(place.micro); failure != failures_.end()) {
      Error error = failure->second;
      failures_.erase(failure);
      return error;
    }
    MicroBatch batch;
    batch.samples.emplace_back().position = place.micro;
    return batch;
  }
  void cancel() {
    const std::lock_guard lock(mutex_);
    cancelled_ = true;
    changed_.notify_all();
  }
  /// A `make` of that micro-batch does not return before release().
  void hold(std::int64_t micro) {
    const std::lock_guard lock(mutex_);
    held_.insert(micro);
  }
  void release(std::int64_t micro) {
    const std::lock_guard lock(mutex_);
    held_.erase(micro);
    changed_.notify_all();
  }
  /// Its next `make` fails.
  void fail(std::int64_t micro, Errc code) {
    const std::lock_guard lock(mutex_);
    failures_.insert_or_assign(micro, Error{code, "scripted"});
  }
  void throw_at(std::int64_t micro) {
    const std::lock_guard lock(mutex_);
    throws_.insert(micro);
  }
  /// Waits until so many have begun.
  void await_begun(std::size_t count) {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, 20s, [&] { return begun_.size() >= count; }));
  }
  std::vector<std::int64_t> begun() {
    const std::lock_guard lock(mutex_);
    return begun_;
  }
  bool was_here(std::size_t index) {
    const std::lock_guard lock(mutex_);
    return threads_.at(index) == std::this_thread::get_id();
  }
  BatchAhead::Clock::time_point since(std::size_t index) {
    const std::lock_guard lock(mutex_);
    return since_.at(index);
  }

 private:
  // declared after the lock, so that it runs under it
  struct Leaving {
    bool& is_making;
    ~Leaving() { is_making = false; }
  };

  std::mutex mutex_;
  std::condition_variable changed_;
  bool cancelled_ = false, is_making_ = false;
  std::set<std::int64_t> held_, throws_;
  std::map<std::int64_t, Error> failures_;
  // One for each call, in order.
  std::vector<std::int64_t> begun_;
  std::vector<std::thread::id> threads_;
  std::vector<BatchAhead::Clock::time_point> since_;
};

/// Micro-batches are those of step 0, by their number.
struct BatchAheadTest : ::testing::Test {
  Result<MicroBatch> take(std::int64_t micro, std::optional<std::int64_t> next) {
    return ahead->take({0, micro}, next ? std::optional(Place{0, *next}) : std::nullopt);
  }
  static std::int64_t position_of(const Result<MicroBatch>& batch) { return batch.value().samples.at(0).position; }

  Script script;
  std::optional<BatchAhead> ahead{
      std::in_place,
      BatchAhead::Options{
          .name = "learner/0 ahead",
          .threads = 1,
          .make = [this](const Place& place, BatchAhead::Clock::time_point since) { return script.make(place, since); },
          .cancel = [this] { script.cancel(); }}};
};

TEST_F(BatchAheadTest, TheNextIsMadeWhileTheCallerComputes) {
  EXPECT_EQ(position_of(take(0, 1)), 0);
  // the caller is in no call: it computes
  script.await_begun(2);
  EXPECT_TRUE(script.was_here(0)) << "nothing had been made ahead";
  EXPECT_FALSE(script.was_here(1));
  EXPECT_EQ(position_of(take(1, {})), 1);
  EXPECT_THAT(script.begun(), ElementsAre(0, 1)) << "what was ahead is not made again";
}

TEST_F(BatchAheadTest, EachIsMadeOnceInTheOrderInWhichTheyAreNamed) {
  for (std::int64_t micro = 0; micro < 50; ++micro) EXPECT_EQ(position_of(take(micro, micro + 1)), micro);
  EXPECT_EQ(position_of(take(50, {})), 50);
  std::vector<std::int64_t> all(51);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::int64_t>(i);
  EXPECT_EQ(script.begun(), all) << "and none behind the last";
}

TEST_F(BatchAheadTest, ACallerThatComesEarlyWaitsForTheOneThatIsBeingMade) {
  script.hold(1);
  take(0, 1).value();
  script.await_begun(2);
  std::thread elsewhere([&] { script.release(1); });
  EXPECT_EQ(position_of(take(1, {})), 1);
  elsewhere.join();
  EXPECT_THAT(script.begun(), ElementsAre(0, 1));
}

TEST_F(BatchAheadTest, AnotherOneIsMadeHereAndWhatIsAheadStays) {
  take(0, 5).value();
  EXPECT_EQ(position_of(take(0, 1)), 0);
  EXPECT_EQ(position_of(take(1, 6)), 1);
  EXPECT_THAT(script.begun(), ElementsAre(0, 5, 0, 1)) << "at most one is ahead";
  EXPECT_TRUE(script.was_here(2) && script.was_here(3));
  EXPECT_EQ(position_of(take(5, 6)), 5);
  script.await_begun(5);
  EXPECT_THAT(script.begun(), ElementsAre(0, 5, 0, 1, 6));
}

TEST_F(BatchAheadTest, NothingElseIsMadeWhileOneIsBeingMade) {
  script.hold(5);
  take(0, 5).value();
  script.await_begun(2);
  std::thread elsewhere([&] { script.release(5); });
  EXPECT_EQ(position_of(take(1, {})), 1);
  elsewhere.join();
  EXPECT_THAT(script.begun(), ElementsAre(0, 5, 1));
}

TEST_F(BatchAheadTest, AnErrorIsThatOfItsOwnMicroBatch) {
  script.fail(1, Errc::data_loss);
  EXPECT_TRUE(take(0, 1));
  script.await_begun(2);
  EXPECT_EQ(take(1, 2).error().code(), Errc::data_loss);
  EXPECT_THAT(script.begun(), ElementsAre(0, 1)) << "nothing follows a failure";
}

TEST_F(BatchAheadTest, AnExceptionIsThrownToWhoTakesItsMicroBatch) {
  script.throw_at(1);
  EXPECT_TRUE(take(0, 1));
  try {
    (void)take(1, {});
    FAIL() << "nothing was thrown";
  } catch (const std::runtime_error& e) {
    EXPECT_STREQ(e.what(), "a shape is wrong");
  }
}

TEST_F(BatchAheadTest, ADeadlineThatPassedAheadIsTriedAgainFromWhenTheCallerAsks) {
  script.fail(1, Errc::deadline_exceeded);
  take(0, 1).value();
  script.await_begun(2);
  const auto asked = BatchAhead::Clock::now();
  EXPECT_EQ(position_of(take(1, {})), 1);
  EXPECT_THAT(script.begun(), ElementsAre(0, 1, 1));
  EXPECT_TRUE(script.was_here(2));
  EXPECT_LT(script.since(1), asked);
  EXPECT_GE(script.since(2), asked);
}

TEST_F(BatchAheadTest, ADeadlineThatPassesForTheCallerIsItsError) {
  script.fail(0, Errc::deadline_exceeded);
  EXPECT_EQ(take(0, 1).error().code(), Errc::deadline_exceeded);
  EXPECT_THAT(script.begun(), ElementsAre(0));
}

TEST_F(BatchAheadTest, ItsEndCancelsAWaitUnderWay) {
  script.hold(1);
  take(0, 1).value();
  script.await_begun(2);
  ahead.reset();
  EXPECT_THAT(script.begun(), ElementsAre(0, 1));
}

TEST(BatchAheadThreadTest, ItComputesAsARanksThreadDoes) {
  std::atomic<int> threads = 0;
  std::atomic<bool> flushes = false;
  const auto make = [&](const Place& place, BatchAhead::Clock::time_point) -> Result<MicroBatch> {
    if (place.micro == 0) return MicroBatch{};
    threads = kernels::num_threads();
    const volatile float subnormal = std::numeric_limits<float>::denorm_min();
    flushes = subnormal * 1.0f == 0.0f;
    return MicroBatch{};
  };
  BatchAhead ahead({.name = "ahead", .threads = 3, .make = make, .cancel = [] {}});
  ahead.take({0, 0}, Place{0, 1}).value();
  ahead.take({0, 1}, {}).value();
  EXPECT_EQ(threads, 3);
  EXPECT_TRUE(flushes);
}

}  // namespace
}  // namespace troupe::workers
