// The service around a policy: order, batches, sessions, bounds, deadlines. The policy waits at a gate where a test
// wants it to.
#include "workers/inference/serve/policy_service.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <future>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "tests/support/scripted_policy.h"
#include "workers/inference/serve/session_table.h"

namespace troupe::workers {
namespace {

using namespace std::chrono_literals;
constexpr auto kPatience = 20s;

/// Where the policy waits, once closed.
class Gate {
 public:
  void pass() {
    std::unique_lock lock(mutex_);
    ++arrived_;
    changed_.notify_all();
    changed_.wait_for(lock, kPatience, [&] { return open_; });
  }
  void close() { set(false); }
  void open() { set(true); }
  bool wait_for_arrival(int count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kPatience, [&] { return arrived_ >= count; });
  }

 private:
  void set(bool open) {
    const std::lock_guard lock(mutex_);
    open_ = open;
    changed_.notify_all();
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = true;
  int arrived_ = 0;
};

class PolicyServiceTest : public ::testing::Test {
 protected:
  using Answer = std::future<Result<PolicyReply>>;

  void start(const PolicyServiceOptions& options = {}) {
    auto policy = std::make_unique<ScriptedPolicy>();
    policy->on_act = [this](std::span<const Observation> seen) {
      sizes_.push_back(seen.size());
      gate_.pass();
    };
    service_ = std::move(PolicyService::start(std::move(policy), options)).value();
  }
  /// Starts, and a call of session "z" begins that does not end before the gate is open.
  Answer start_busy(const PolicyServiceOptions& options = {}) {
    start(options);
    gate_.close();
    auto running = infer("z", droid_observation(1));
    EXPECT_TRUE(gate_.wait_for_arrival(1));
    return running;
  }
  void TearDown() override {
    gate_.open();
    if (service_) service_->stop();
  }

  Answer infer(const std::string& session, Observation row, bool is_new = false) {
    PolicyRequest request{session, is_new, {}};
    request.rows.push_back(std::move(row));
    return ask([&](PolicyService::Done done) { service_->infer(std::move(request), std::move(done)); });
  }
  Answer reset(const std::string& session) {
    return ask([&](PolicyService::Done done) { service_->reset(session, std::move(done)); });
  }
  /// Rows 0 and 1 of the only chunk (scripted_policy.h).
  static std::vector<float> seen(Answer&& answer) {
    auto result = get(answer);
    const auto& values = result->rows.front().values;
    return {values.begin() + 8, values.begin() + 16};
  }
  static Errc code(Answer&& answer) { return get(answer).error().code(); }

  static std::vector<float> seen(Answer& answer) { return seen(std::move(answer)); }
  static Errc code(Answer& answer) { return code(std::move(answer)); }
  bool becomes_unhealthy() const {
    const auto until = std::chrono::steady_clock::now() + kPatience;
    while (service_->is_healthy() && std::chrono::steady_clock::now() < until) std::this_thread::yield();
    return !service_->is_healthy();
  }

  Gate gate_;
  std::vector<std::size_t> sizes_;  // the policy's thread; read after stop
  std::unique_ptr<PolicyService> service_;

 private:
  template <class Ask>
  Answer ask(Ask ask) {
    auto promise = std::make_shared<std::promise<Result<PolicyReply>>>();
    auto future = promise->get_future();
    ask([promise](Result<PolicyReply> result) { promise->set_value(std::move(result)); });
    return future;
  }
  static Result<PolicyReply> get(Answer& answer) {
    if (answer.wait_for(kPatience) != std::future_status::ready) return Error{Errc::internal, "no answer"};
    return answer.get();
  }
};

TEST_F(PolicyServiceTest, TheFirstCallHasOneFrameAndLaterOnesFour) {
  start();
  EXPECT_EQ(seen(infer("a", droid_observation(10))), (std::vector<float>{1, 1, 10, 11, 12, 10, 7, 1}));
  EXPECT_EQ(seen(infer("a", droid_observation(20))), (std::vector<float>{4, 2, 20, 21, 22, 10, 7, 1}));
  EXPECT_EQ(seen(infer("b", droid_observation(30))), (std::vector<float>{1, 1, 30, 31, 32, 30, 7, 1}));
}

TEST_F(PolicyServiceTest, ResetAndANewSessionForget) {
  start();
  auto first = infer("a", droid_observation(10));
  auto done = reset("a");
  auto second = infer("a", droid_observation(20)), third = infer("a", droid_observation(30), true);
  EXPECT_TRUE(done.get());
  EXPECT_EQ(seen(first)[1], 1);
  EXPECT_EQ(seen(second)[1], 1);
  EXPECT_EQ(seen(third)[1], 1);
}

TEST_F(PolicyServiceTest, WhatWaitsGoesIntoOneCallAndASessionNeverTwice) {
  auto first = start_busy();
  auto a1 = infer("a", droid_observation(10)), b = infer("b", droid_observation(20)),
       a2 = infer("a", droid_observation(30)), c = infer("c", droid_observation(40));
  gate_.open();
  EXPECT_EQ(seen(a1)[7], 3);  // a, b, c
  EXPECT_EQ(seen(b)[2], 20);
  EXPECT_EQ(seen(c)[2], 40);
  EXPECT_EQ(seen(a2)[1], 2);
  seen(first);
  service_->stop();
  EXPECT_EQ(sizes_, (std::vector<std::size_t>{1, 3, 1}));
  EXPECT_EQ(service_->stats().largest_batch, 3U);
}

TEST_F(PolicyServiceTest, AFullQueueRefusesAtOnce) {
  auto running = start_busy({.queue = 2});
  auto a = infer("a", droid_observation(1)), b = infer("b", droid_observation(1)),
       refused = infer("c", droid_observation(1));
  ASSERT_EQ(refused.wait_for(kPatience), std::future_status::ready);
  EXPECT_EQ(code(refused), Errc::resource_exhausted);
  gate_.open();
  seen(a), seen(b), seen(running);
  EXPECT_EQ(service_->stats().refused, 1U);
}

TEST_F(PolicyServiceTest, ImagesThatWaitAreBounded) {
  auto running = start_busy({.queue_bytes = 500});  // a request has 216 bytes
  auto a = infer("a", droid_observation(1)), b = infer("b", droid_observation(1)),
       refused = infer("c", droid_observation(1));
  EXPECT_EQ(code(refused), Errc::resource_exhausted);
  gate_.open();
  seen(a), seen(b), seen(running);
}

TEST_F(PolicyServiceTest, ADeadlineIsAnsweredWhileThePolicyIsStuck) {
  start({.request_timeout = 100ms});
  gate_.close();
  auto stuck = infer("a", droid_observation(10)), waiting = infer("b", droid_observation(20));
  EXPECT_EQ(code(stuck), Errc::deadline_exceeded);
  EXPECT_EQ(code(waiting), Errc::deadline_exceeded);
  // the policy's call began a little later than the request came
  EXPECT_TRUE(becomes_unhealthy());
  gate_.open();
  ASSERT_TRUE(gate_.wait_for_arrival(1));
  // what came too late is not remembered
  EXPECT_EQ(seen(infer("a", droid_observation(30)))[1], 1);
  EXPECT_EQ(service_->stats().late, 2U);
}

TEST_F(PolicyServiceTest, AnErrorCostsItsOwnRequestAndItsSessionsMemory) {
  start();
  EXPECT_EQ(seen(infer("a", droid_observation(10)))[1], 1);
  Observation failing = droid_observation(20), nan = droid_observation(20), resized = droid_observation(20);
  failing.prompt = "fail";
  nan.prompt = "nan";
  resized.images["wrist_image_left"] = flat_image(1, {8, 8, 3});
  auto failed = infer("a", failing), good = infer("b", droid_observation(30));
  EXPECT_EQ(code(failed), Errc::invalid_argument);
  EXPECT_EQ(seen(good)[2], 30);
  EXPECT_EQ(seen(infer("a", droid_observation(40)))[1], 1);
  EXPECT_EQ(code(infer("a", nan)), Errc::internal);
  auto again = infer("a", droid_observation(50)), other_size = infer("a", resized);
  EXPECT_EQ(seen(again)[1], 1);
  EXPECT_EQ(code(other_size), Errc::invalid_argument);
}

TEST_F(PolicyServiceTest, AnExceptionOfThePolicyIsAnErrorAndTheServiceGoesOn) {
  start();
  Observation throwing = droid_observation(1);
  throwing.prompt = "throw";
  EXPECT_EQ(code(infer("a", throwing)), Errc::internal);
  EXPECT_EQ(seen(infer("a", droid_observation(2)))[1], 1);
}

TEST_F(PolicyServiceTest, AnExceptionCostsTheOthersOfItsCallNothing) {
  auto running = start_busy();
  Observation throwing = droid_observation(1);
  throwing.prompt = "throw";
  auto before = infer("a", droid_observation(10)), failed = infer("b", throwing),
       after = infer("c", droid_observation(30));
  gate_.open();
  EXPECT_EQ(seen(before)[2], 10);
  EXPECT_EQ(code(failed), Errc::internal);
  EXPECT_EQ(seen(after)[2], 30);
  seen(running);
  service_->stop();
  EXPECT_EQ(sizes_, (std::vector<std::size_t>{1, 3, 1, 1, 1}));
}

TEST_F(PolicyServiceTest, StoppingAnswersWhatWaits) {
  auto running = start_busy();
  auto waiting = infer("a", droid_observation(1));
  std::thread stopper([&] { service_->stop(); });
  ASSERT_TRUE(becomes_unhealthy());
  gate_.open();
  stopper.join();
  EXPECT_EQ(seen(running)[1], 1);
  EXPECT_EQ(code(waiting), Errc::cancelled);
  EXPECT_EQ(code(infer("a", droid_observation(1))), Errc::cancelled);
  EXPECT_FALSE(nlohmann::json::parse(status_json(*service_)).at("healthy").get<bool>());
}

class SessionTableTest : public ::testing::Test {
 protected:
  using Clock = SessionTable::Clock;
  Result<std::vector<Observation>> call(SessionTable& table, const std::string& session, Clock::time_point now) {
    std::vector<Observation> rows;
    rows.push_back(droid_observation(1));
    return table.observe(session, std::move(rows), now);
  }
  ScriptedPolicy policy_;
  const Clock::time_point start_ = Clock::now();
};

TEST_F(SessionTableTest, AFullTableGivesUpTheSessionThatWasQuietLongest) {
  SessionTable table({.max_sessions = 2, .idle_timeout = 600s, .evict_after = 30s}, policy_);
  ASSERT_TRUE(call(table, "a", start_));
  ASSERT_TRUE(call(table, "b", start_ + 10s));
  EXPECT_EQ(call(table, "c", start_ + 20s).error().code(), Errc::resource_exhausted);
  ASSERT_TRUE(call(table, "c", start_ + 35s));
  EXPECT_EQ(policy_.resets, std::vector<std::string>{"a#1"});
  EXPECT_EQ(table.size(), 2);
  EXPECT_EQ(table.evicted(), 1U);
}

TEST_F(SessionTableTest, IdleSessionsExpire) {
  SessionTable table({.max_sessions = 8, .idle_timeout = 600s, .evict_after = 30s}, policy_);
  ASSERT_TRUE(call(table, "a", start_));
  ASSERT_TRUE(call(table, "b", start_ + 500s));
  EXPECT_EQ(table.expire(start_ + 599s), 0);
  EXPECT_EQ(table.expire(start_ + 600s), 1);
  EXPECT_EQ(call(table, "a", start_ + 601s)->front().episode, "a#3");
}

TEST_F(SessionTableTest, ImagesKeptForOneSessionAreBounded) {
  SessionTable table({.session_bytes = 3 * 4 * 72}, policy_);  // three cameras of 4 x 6 x 3, four frames each
  std::vector<Observation> one(1, droid_observation(1)), two(2, droid_observation(1));
  one.front().images["wrist_image_left"] = flat_image(1, {9, 4, 6, 3});  // only the newest four of nine are kept
  EXPECT_TRUE(table.observe("a", one, start_));
  EXPECT_EQ(table.observe("b", two, start_).error().code(), Errc::resource_exhausted);
}

TEST_F(SessionTableTest, ABatchKeepsItsNumberOfRobots) {
  SessionTable table({}, policy_);
  std::vector<Observation> two(2, droid_observation(1)), three(3, droid_observation(1));
  const auto seen = table.observe("a", two, start_);
  EXPECT_NE(seen->at(0).episode, seen->at(1).episode);
  EXPECT_FALSE(table.observe("a", three, start_));
  EXPECT_FALSE(table.observe("b", {}, start_));
}

}  // namespace
}  // namespace troupe::workers
