#include "env/executor.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>

#include <atomic>
#include <csignal>
#include <functional>
#include <latch>
#include <thread>
#include <vector>

namespace troupe::env {
namespace {

/// Runs a batch and waits for its end.
void run_and_wait(Executor& executor, std::int64_t rows, std::function<void(std::int64_t)> row) {
  std::latch done(1);
  executor.run(rows, std::move(row), [&done] { done.count_down(); });
  done.wait();
}

class ExecutorTest : public ::testing::TestWithParam<int> {};

TEST_P(ExecutorTest, RunsEveryRowOnceInEveryBatch) {
  const auto executor = Executor::make({.threads = GetParam()});
  for (const std::int64_t rows : {1, 2, 7, 64, 500}) {
    std::vector<int> count(static_cast<std::size_t>(rows));
    for (int batch = 0; batch < 50; ++batch) {
      run_and_wait(*executor, rows, [&count](std::int64_t i) { ++count[static_cast<std::size_t>(i)]; });
    }
    for (const int c : count) EXPECT_EQ(c, 50) << rows << " rows";
  }
}

TEST_P(ExecutorTest, BatchesThatAreUnderWayTogetherAllFinish) {
  // Far more than the slots hold: what does not fit waits its turn.
  constexpr int kBatches = 300;
  std::vector<std::atomic<int>> finished(kBatches);
  {
    const auto executor = Executor::make({.threads = GetParam()});
    for (std::size_t b = 0; b < kBatches; ++b) {
      executor->run(
          5, [](std::int64_t) {}, [&finished, b] { ++finished[b]; });
    }
  }
  for (const auto& count : finished) EXPECT_EQ(count, 1);
}

TEST_P(ExecutorTest, ADoneMayRunTheNextBatch) {
  const auto executor = Executor::make({.threads = GetParam()});
  constexpr int kChain = 2000;
  std::vector<int> count(16);
  int batches = 0;
  std::latch done(1);
  std::function<void()> next = [&] {
    if (++batches == kChain) return done.count_down();
    executor->run(
        16, [&count](std::int64_t i) { ++count[static_cast<std::size_t>(i)]; }, next);
  };
  next();
  done.wait();
  for (const int c : count) EXPECT_EQ(c, kChain - 1);
}

TEST_P(ExecutorTest, SeveralCallersRunBatchesAtOnce) {
  const auto executor = Executor::make({.threads = GetParam()});
  std::atomic<int> rows{0};
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 4; ++caller) {
    callers.emplace_back([&] {
      for (int batch = 0; batch < 200; ++batch) run_and_wait(*executor, 9, [&rows](std::int64_t) { ++rows; });
    });
  }
  for (auto& caller : callers) caller.join();
  EXPECT_EQ(rows, 4 * 200 * 9);
}

TEST_P(ExecutorTest, DoneSeesWhatEveryRowWrote) {
  const auto executor = Executor::make({.threads = GetParam()});
  std::vector<std::int64_t> written(200);
  std::int64_t sum = 0;
  std::latch done(1);
  executor->run(
      200, [&](std::int64_t i) { written[static_cast<std::size_t>(i)] = i; },
      [&] {
        for (const std::int64_t w : written) sum += w;
        done.count_down();
      });
  done.wait();
  EXPECT_EQ(sum, 199 * 200 / 2);
}

TEST_P(ExecutorTest, AFixedClaimRunsEveryRowToo) {
  const auto executor = Executor::make({.threads = GetParam(), .claim = 7});
  std::atomic<int> rows{0};
  run_and_wait(*executor, 50, [&rows](std::int64_t) { ++rows; });
  EXPECT_EQ(rows, 50);
}

TEST_P(ExecutorTest, ACallerThatHelpsTakesItsShareOfTheRows) {
  const auto executor = Executor::make({.threads = GetParam()});
  std::vector<int> count(9);
  for (int batch = 0; batch < 500; ++batch) {
    std::latch done(1);
    executor->run(
        9, [&count](std::int64_t i) { ++count[static_cast<std::size_t>(i)]; }, [&done] { done.count_down(); },
        Executor::Caller::helps);
    executor->help([&done] { return done.try_wait(); });
    done.wait();
  }
  for (const int c : count) EXPECT_EQ(c, 500);
}

INSTANTIATE_TEST_SUITE_P(Threads, ExecutorTest, ::testing::Values(1, 2, 4));

TEST(ExecutorThreadsTest, ABatchOvertakesOneThatIsStuck) {
  const auto executor = Executor::make({.threads = 2});
  std::latch release(1), first_done(1);
  executor->run(
      1, [&](std::int64_t) { release.wait(); }, [&] { first_done.count_down(); });
  run_and_wait(*executor, 10, [](std::int64_t) {});
  release.count_down();
  first_done.wait();
}

TEST(ExecutorThreadsTest, SteppingThreadsReceiveNoSignals) {
  const auto executor = Executor::make({.threads = 1});
  sigset_t mask;
  sigemptyset(&mask);
  run_and_wait(*executor, 1, [&mask](std::int64_t) { pthread_sigmask(SIG_SETMASK, nullptr, &mask); });
  EXPECT_TRUE(sigismember(&mask, SIGTERM));
  EXPECT_TRUE(sigismember(&mask, SIGINT));
}

TEST(ExecutorThreadsTest, APinnedThreadHasOneCpu) {
  const auto executor = Executor::make({.threads = 2, .pin = true});
  int cpus = 0;
  run_and_wait(*executor, 1, [&cpus](std::int64_t) {
    cpu_set_t set;
    CPU_ZERO(&set);
    sched_getaffinity(0, sizeof set, &set);
    cpus = CPU_COUNT(&set);
  });
  EXPECT_EQ(cpus, 1);
}

TEST(ExecutorThreadsTest, DestructionWaitsForTheBatchesUnderWay) {
  std::atomic<int> rows{0}, done{0};
  {
    const auto executor = Executor::make({.threads = 2});
    for (int batch = 0; batch < 20; ++batch)
      executor->run(
          30, [&rows](std::int64_t) { ++rows; }, [&done] { ++done; });
  }
  EXPECT_EQ(rows, 600);
  EXPECT_EQ(done, 20);
}

}  // namespace
}  // namespace troupe::env
