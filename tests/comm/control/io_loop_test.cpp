#include "comm/control/io_loop.h"

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <stdexcept>
#include <thread>

#include "comm/control/strike_list.h"
#include "comm/control/timer_queue.h"
#include "loop_fixture.h"

namespace troupe::comm {
namespace {

class IoLoopTest : public LoopTest {};

TEST_F(IoLoopTest, PostedTasksRunInOrderOnOneThread) {
  auto loop = start("order");
  std::vector<int> seen;  // the loop's thread only, until the signal
  std::thread::id id;
  Signal done;
  for (int i = 0; i < 1000; ++i) loop->post([&, i] { seen.push_back(i); });
  loop->post([&] {
    id = std::this_thread::get_id();
    done.raise();
  });
  ASSERT_TRUE(done.wait_for());
  ASSERT_EQ(seen.size(), 1000U);
  EXPECT_TRUE(std::is_sorted(seen.begin(), seen.end()));
  EXPECT_NE(id, std::this_thread::get_id());
}

TEST_F(IoLoopTest, NoTaskIsLostWhenManyThreadsPost) {
  auto loop = start("many");
  constexpr int kThreads = 4, kTasks = 5000;
  std::atomic<int> ran{0};
  Signal done;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < kTasks; ++i) {
        loop->post([&] {
          if (ran.fetch_add(1) + 1 == kThreads * kTasks) done.raise();
        });
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_TRUE(done.wait_for());
  EXPECT_EQ(ran.load(), kThreads * kTasks);
}

TEST_F(IoLoopTest, TimersRunByDueTimeAndCancelledOnesDoNot) {
  auto loop = start("timers");
  std::vector<int> seen;
  Signal done;
  // Set on the loop's own thread, so that none can come due before the cancelled one is cancelled.
  loop->post([&] {
    loop->after(600ms, [&] {
      seen.push_back(3);
      done.raise();
    });
    loop->after(300ms, [&] { seen.push_back(2); });
    const auto cancelled = loop->after(0ms, [&] { seen.push_back(99); });
    loop->after(0ms, [&] { seen.push_back(1); });
    loop->cancel(cancelled);
    loop->cancel(123'456);  // unknown: nothing happens
  });
  ASSERT_TRUE(done.wait_for());
  EXPECT_EQ(seen, (std::vector<int>{1, 2, 3}));
}

TEST_F(IoLoopTest, ATimerMayStartAnotherAndCancelIt) {
  auto loop = start("chain");
  Signal done;
  std::vector<int> seen;
  loop->after(1ms, [&] {
    seen.push_back(1);
    const auto never = loop->after(1ms, [&] { seen.push_back(99); });
    loop->after(20ms, [&] {
      seen.push_back(2);
      done.raise();
    });
    loop->cancel(never);
  });
  ASSERT_TRUE(done.wait_for());
  EXPECT_EQ(seen, (std::vector<int>{1, 2}));
}

TEST_F(IoLoopTest, AWatchedDescriptorCallsUntilItSaysStop) {
  auto loop = start("watch");
  const int fd = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK | EFD_SEMAPHORE);
  std::atomic<int> calls{0};
  Signal called;
  loop->watch(fd, [&] {
    std::uint64_t value = 0;
    EXPECT_EQ(::read(fd, &value, sizeof value), static_cast<ssize_t>(sizeof value));
    called.raise();
    return ++calls < 3;
  });
  const std::uint64_t five = 5;
  ASSERT_EQ(::write(fd, &five, sizeof five), static_cast<ssize_t>(sizeof five));
  ASSERT_TRUE(called.wait_for(3));
  // still readable, but nobody looks: two more turns pass
  Signal turned;
  loop->after(20ms, [&] { turned.raise(); });
  ASSERT_TRUE(turned.wait_for());
  EXPECT_EQ(calls.load(), 3);
  ::close(fd);
}

TEST_F(IoLoopTest, AnUnwatchedDescriptorIsLeftAlone) {
  auto loop = start("unwatch");
  const int fd = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  std::atomic<int> calls{0};
  loop->watch(fd, [&] { return ++calls, true; });
  loop->unwatch(fd);
  const std::uint64_t one = 1;
  Signal turned;
  loop->post([&] { EXPECT_EQ(::write(fd, &one, sizeof one), static_cast<ssize_t>(sizeof one)); });
  loop->after(20ms, [&] { turned.raise(); });
  ASSERT_TRUE(turned.wait_for());
  EXPECT_EQ(calls.load(), 0);
  ::close(fd);
}

TEST_F(IoLoopTest, TasksPostedBeforeTheEndRunAndLaterTimersDoNot) {
  std::atomic<int> ran{0};
  {
    auto loop = start("end");
    loop->after(10min, [&] { ran += 1000; });
    for (int i = 0; i < 100; ++i) loop->post([&] { ++ran; });
  }
  EXPECT_EQ(ran.load(), 100);
}

TEST_F(IoLoopTest, AnExceptionIsCountedAndTheLoopGoesOn) {
  auto loop = start("throw");
  Signal after_it;
  loop->post([] { throw std::runtime_error("a callback failed"); });
  loop->post([] { throw 7; });
  loop->post([&] { after_it.raise(); });
  ASSERT_TRUE(after_it.wait_for());
  EXPECT_EQ(loop->stats().exceptions, 2U);
}

TEST_F(IoLoopTest, StatsShowTheLongestTurn) {
  auto loop = start("stats");
  Signal done;
  loop->post([&] {
    const auto until = std::chrono::steady_clock::now() + 5ms;
    while (std::chrono::steady_clock::now() < until) {
    }
    done.raise();
  });
  ASSERT_TRUE(done.wait_for());
  EXPECT_TRUE(eventually(*loop, [&] { return loop->stats().longest_turn_s >= 0.005; }));
}

using IoLoopDeathTest = IoLoopTest;

TEST_F(IoLoopDeathTest, TheThirdExceptionInTenSecondsAborts) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_DEATH(
      {
        auto loop = start("dying");
        Signal never;
        for (int i = 0; i < 3; ++i) loop->post([] { throw std::runtime_error("again"); });
        never.wait_for();
      },
      "callbacks of the io loop");
}

TEST(StrikeListTest, TenStrikesInAMinuteIgnoreThePeerForAMinute) {
  StrikeList list;
  const StrikeList::Time t0{};
  for (int i = 0; i < 9; ++i) EXPECT_FALSE(list.strike("bad", t0 + i * 1s));
  EXPECT_FALSE(list.is_quarantined("bad", t0 + 9s));
  EXPECT_TRUE(list.strike("bad", t0 + 10s));
  EXPECT_TRUE(list.is_quarantined("bad", t0 + 69s));
  EXPECT_FALSE(list.is_quarantined("bad", t0 + 70s));
  EXPECT_FALSE(list.is_quarantined("good", t0 + 11s));
}

TEST(StrikeListTest, SlowStrikesAreForgiven) {
  StrikeList list;
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(list.strike("clumsy", StrikeList::Time{} + i * 7s));
}

TEST(TimerQueueTest, EqualTimesRunInOrderOfIds) {
  TimerQueue timers;
  const TimerQueue::Time t0{};
  std::string ran;
  timers.add(2, t0 + 5ms, [&] { ran += 'b'; });
  timers.add(1, t0 + 5ms, [&] { ran += 'a'; });
  timers.add(3, t0 + 1ms, [&] { ran += 'c'; });
  EXPECT_FALSE(timers.take_due(t0));
  EXPECT_EQ(timers.next_due(), t0 + 1ms);
  while (auto task = timers.take_due(t0 + 5ms)) task();
  EXPECT_EQ(ran, "cab");
  EXPECT_EQ(timers.next_due(), std::nullopt);
}

TEST(TimerQueueTest, CancelledTimersLeaveNothingBehind) {
  TimerQueue timers;
  timers.add(1, TimerQueue::Time{} + 5ms, [] {});
  timers.cancel(1);
  timers.cancel(1);
  EXPECT_EQ(timers.size(), 0U);
  EXPECT_FALSE(timers.take_due(TimerQueue::Time{} + 1h));
}

}  // namespace
}  // namespace troupe::comm
