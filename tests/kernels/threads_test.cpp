// Work shared among threads: every part once, the caller's modes, exceptions, nesting.
#include "kernels/threads.h"

#include <ATen/Context.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <stdexcept>
#include <thread>
#include <vector>

namespace troupe::kernels {
namespace {

TEST(ThreadsTest, EveryPartRunsOnce) {
  for (const int threads : {1, 2, 3, 7}) {
    for (const std::int64_t parts : {0, 1, 2, 5, 100}) {
      std::vector<std::atomic<int>> seen(static_cast<std::size_t>(parts));
      each_part(parts, threads, [&](std::int64_t part) { ++seen[static_cast<std::size_t>(part)]; });
      for (const auto& count : seen) EXPECT_EQ(count, 1);
    }
  }
}

TEST(ThreadsTest, RangesCoverEverythingAndBeginAtBlocks) {
  for (const std::int64_t n : {0, 1, 63, 64, 65, 1000}) {
    std::vector<std::atomic<int>> seen(static_cast<std::size_t>(n));
    parallel_blocks(n, 64, 3, [&](std::int64_t begin, std::int64_t end) {
      EXPECT_EQ(begin % 64, 0);
      for (auto i = begin; i < end; ++i) ++seen[static_cast<std::size_t>(i)];
    });
    for (const auto& count : seen) EXPECT_EQ(count, 1);
  }
}

TEST(ThreadsTest, AnExceptionOfAPartArrivesAfterTheOthers) {
  std::atomic<int> ended = 0;
  const auto work = [&] {
    each_part(20, 4, [&](std::int64_t part) {
      if (part == 3) throw std::runtime_error("part 3");
      ++ended;
    });
  };
  EXPECT_THROW(work(), std::runtime_error);
}

TEST(ThreadsTest, ATeamRunsEveryPartOfEveryPieceOnceWithTheCallersNumberOfThreads) {
  for (const int threads : {1, 2, 3, 7}) {
    with_team(threads, [&] {
      EXPECT_LE(num_threads(), std::max(threads, 1));
      for (const std::int64_t parts : {1, 2, 5, 100, 0, 3}) {
        std::vector<std::atomic<int>> seen(static_cast<std::size_t>(parts));
        each_part(parts, threads, [&](std::int64_t part) {
          ++seen[static_cast<std::size_t>(part)];
          if (parts > 1 && threads > 1) {
            EXPECT_EQ(num_threads(), 1);
          }
        });
        for (const auto& count : seen) EXPECT_EQ(count, 1);
      }
    });
  }
}

TEST(ThreadsTest, AnOwnTeamStaysFromCallToCallAndGrowsWhereMoreIsAsked) {
  std::thread([] {
    for (const int threads : {1, 2, 2, 5, 3}) {
      with_own_team(threads, [&] {
        if (threads > 1) {
          EXPECT_EQ(num_threads(), threads);
        }
        for (int piece = 0; piece < 50; ++piece) {
          std::vector<std::atomic<int>> runs(7);
          each_part(7, threads, [&](std::int64_t part) {
            ++runs[static_cast<std::size_t>(part)];
            if (threads > 1) {
              EXPECT_EQ(num_threads(), 1);
            }
          });
          for (const auto& count : runs) EXPECT_EQ(count, 1);
        }
      });
      EXPECT_THROW(with_own_team(threads, [] { throw std::runtime_error("outside"); }), std::runtime_error);
    }
  }).join();
}

TEST(ThreadsTest, AnExceptionLeavesATeamAndATeamMayBeInsideAnother) {
  const auto failing = [] {
    with_team(3, [] {
      with_team(3, [] { each_part(20, 3, [](std::int64_t) {}); });
      each_part(20, 3, [](std::int64_t part) {
        if (part == 3) throw std::runtime_error("part 3");
      });
    });
  };
  EXPECT_THROW(failing(), std::runtime_error);
  with_team(2, [] { each_part(2, 2, [](std::int64_t) {}); });
  EXPECT_THROW(with_team(2, [] { throw std::runtime_error("outside"); }), std::runtime_error);
}

TEST(ThreadsTest, PartsFlushSubnormalNumbersAsTheCallerDoes) {
  volatile float smallest = std::numeric_limits<float>::min();
  const auto halves = [&] {
    std::atomic<int> flushed = 0;
    each_part(64, 4, [&](std::int64_t) { flushed += smallest / 2 == 0.0F ? 1 : 0; });
    return flushed.load();
  };
  EXPECT_EQ(halves(), 0);
  if (!at::globalContext().setFlushDenormal(true)) GTEST_SKIP() << "this processor keeps subnormal numbers";
  EXPECT_EQ(halves(), 64);
  at::globalContext().setFlushDenormal(false);
  EXPECT_EQ(halves(), 0);
}

TEST(ThreadsTest, APartHasOneThread) {
  set_num_threads(4);
  EXPECT_EQ(num_threads(), 4);
  std::atomic<int> most = 0;
  each_part(8, 2, [&](std::int64_t) {
    if (num_threads() > most) most = num_threads();
  });
#if defined(_OPENMP)
  EXPECT_EQ(most, 1);
#endif
  set_num_threads(0);
}

}  // namespace
}  // namespace troupe::kernels
