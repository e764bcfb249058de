#include "tests/comm/collective/collective_conformance.h"

#include <gmock/gmock.h>

#include <atomic>
#include <condition_variable>
#include <mutex>

namespace troupe::comm {
namespace {

using namespace std::chrono_literals;

TEST_P(CollectiveConformanceTest, AllGatherPutsEveryShardAtItsPlace) {
  for (const int world : {1, 2, 3}) {
    run_ranks(world, [&](Collective& c) {
      std::vector<float> shard(1000), full(1000 * static_cast<std::size_t>(world), -1.0f);
      for (std::size_t i = 0; i < shard.size(); ++i) shard[i] = noisy(c.rank(), 0, i);
      ASSERT_TRUE(c.all_gather(bytes(full), bytes(shard)));
      for (int r = 0; r < world; ++r) {
        for (std::size_t i = 0; i < 1000; ++i) ASSERT_EQ(full[static_cast<std::size_t>(r) * 1000 + i], noisy(r, 0, i));
      }
    });
  }
}

TEST_P(CollectiveConformanceTest, AllGatherTakesAShardThatLiesInItsPlace) {
  run_ranks(3, [&](Collective& c) {
    std::vector<float> full(3 * 700, -1.0f);
    const auto own = static_cast<std::size_t>(c.rank()) * 700;
    for (std::size_t i = 0; i < 700; ++i) full[own + i] = noisy(c.rank(), 0, i);
    ASSERT_TRUE(c.all_gather(bytes(full), bytes(full).subspan(own * sizeof(float), 700 * sizeof(float))));
    for (std::size_t i = 0; i < full.size(); ++i) ASSERT_EQ(full[i], noisy(static_cast<int>(i / 700), 0, i % 700));
  });
}

TEST_P(CollectiveConformanceTest, AllToAllHandsEveryRankItsPart) {
  for (const int world : {1, 2, 3}) {
    run_ranks(world, [&](Collective& c) {
      const auto ranks = static_cast<std::size_t>(world);
      std::vector<float> sent(ranks * 3000), received(ranks * 3000);
      for (std::size_t i = 0; i < sent.size(); ++i) sent[i] = noisy(c.rank(), 1, i);
      ASSERT_TRUE(c.all_to_all(bytes(received), bytes(sent)));
      for (std::size_t i = 0; i < received.size(); ++i) {
        const std::size_t at = static_cast<std::size_t>(c.rank()) * 3000 + i % 3000;
        ASSERT_EQ(received[i], noisy(static_cast<int>(i / 3000), 1, at));
      }
    });
  }
}

TEST_P(CollectiveConformanceTest, RanksOfOneColourFormAGroupInTheirOrder) {
  run_ranks(4, [&](Collective& c) {
    const auto pairs = c.split(c.rank() / 2).value();
    const auto stripes = c.split(c.rank() % 2).value();
    const auto alone = c.split(c.rank()).value();
    EXPECT_EQ(pairs->rank(), c.rank() % 2);
    EXPECT_EQ(stripes->rank(), c.rank() / 2);
    EXPECT_EQ(pairs->world() + stripes->world() + alone->world(), 2 + 2 + 1);
    std::vector<double> of_pair{static_cast<double>(c.rank())}, of_stripe = of_pair;
    ASSERT_TRUE(pairs->all_reduce_sum(of_pair));
    ASSERT_TRUE(stripes->all_reduce_sum(of_stripe));
    EXPECT_EQ(of_pair[0], c.rank() < 2 ? 1 : 5);
    EXPECT_EQ(of_stripe[0], c.rank() % 2 == 0 ? 2 : 4);
  });
}

TEST_P(CollectiveConformanceTest, AGroupEndsTheOnesThatWereSplitOff) {
  run_ranks(2, [&](Collective& c) {
    const auto part = c.split(0).value();
    if (c.rank() == 0) return c.abort("scripted");
    std::vector<double> value{1};
    const auto waited = part->all_reduce_sum(value);
    ASSERT_FALSE(waited);
    EXPECT_THAT(waited.error().code(), ::testing::AnyOf(Errc::aborted, Errc::deadline_exceeded));
  });
}

TEST_P(CollectiveConformanceTest, ManyOperationsKeepTheirOrder) {
  run_ranks(2, [&](Collective& c) {
    for (int k = 0; k < 12; ++k) {
      std::vector<float> shard(257, static_cast<float>(100 * k + c.rank())), full(2 * 257, -1.0f);
      ASSERT_TRUE(c.all_gather(bytes(full), bytes(shard)));
      EXPECT_EQ(full[256], static_cast<float>(100 * k));
      EXPECT_EQ(full[257], static_cast<float>(100 * k + 1));
    }
  });
}

TEST_P(CollectiveConformanceTest, SumsAreFormedInRankOrderAndAMaximumKeepsNan) {
  run_ranks(3, [&](Collective& c) {
    // 1e20 + 1 is 1e20: only the order of the ranks gives 0 + 1
    const double values[] = {1e20, -1e20, 1.0};
    double sum = values[c.rank()];
    ASSERT_TRUE(c.all_reduce_sum({&sum, 1}));
    EXPECT_EQ(sum, 1.0);
    double largest[] = {c.rank() == 0 ? std::nan("") : 1.0, c.rank() == 2 ? std::nan("") : 1.0};
    ASSERT_TRUE(c.all_reduce_max(largest));
    EXPECT_TRUE(std::isnan(largest[0]) && std::isnan(largest[1]));
  });
}

TEST_P(CollectiveConformanceTest, AllReduceGivesEveryRankTheSameSumAndMaximum) {
  run_ranks(3, [&](Collective& c) {
    std::vector<double> sums = {0.1 * (c.rank() + 1), 1.0},
                        maxima = {static_cast<double>(-c.rank()), static_cast<double>(c.rank())};
    ASSERT_TRUE(c.all_reduce_sum(sums));
    ASSERT_TRUE(c.all_reduce_max(maxima));
    EXPECT_EQ(sums[0], (0.1 * 1 + 0.1 * 2) + 0.1 * 3);
    EXPECT_EQ(sums[1], 3.0);
    EXPECT_THAT(maxima, ::testing::ElementsAre(0.0, 2.0));
  });
}

TEST_P(CollectiveConformanceTest, BroadcastAndBarrierReachEveryRank) {
  std::atomic<int> arrived{0};
  run_ranks(3, [&](Collective& c) {
    std::vector<double> value = {c.rank() == 2 ? 42.0 : 0.0};
    ASSERT_TRUE(c.broadcast(std::as_writable_bytes(std::span(value)), 2));
    EXPECT_EQ(value[0], 42.0);
    arrived.fetch_add(1);
    ASSERT_TRUE(c.barrier());
    EXPECT_EQ(arrived.load(), 3);
  });
}

TEST_P(CollectiveConformanceTest, AWrongShardSizeIsRefused) {
  run_ranks(1, [&](Collective& c) {
    std::vector<float> full(7), shard(3);
    const auto result = c.all_gather(bytes(full), bytes(shard));
    EXPECT_EQ(result.error().code(), Errc::invalid_argument);
  });
}

TEST_P(CollectiveConformanceTest, AMissingRankEndsTheWaitAtItsDeadline) {
  std::mutex mutex;
  std::condition_variable changed;
  bool failed = false;
  run_ranks(
      2,
      [&](Collective& c) {
        if (c.rank() == 1) {
          // stays in the group, but issues nothing until its peer has given up
          std::unique_lock lock(mutex);
          EXPECT_TRUE(changed.wait_for(lock, 20s, [&] { return failed; }));
          return;
        }
        std::vector<float> full(20), shard(10);
        const auto result = c.all_gather(bytes(full), bytes(shard));
        EXPECT_EQ(result.error().code(), Errc::deadline_exceeded) << result.error().to_string();
        EXPECT_THAT(result.error().message(), ::testing::HasSubstr("all_gather #0"));
        EXPECT_EQ(c.barrier().error().code(), Errc::aborted);
        const std::lock_guard lock(mutex);
        failed = true;
        changed.notify_all();
      },
      1s);  // for joining too, which a loaded machine must manage
}

TEST_P(CollectiveConformanceTest, AbortWakesAWaiterAndFailsLaterOperations) {
  std::mutex mutex;
  std::condition_variable changed;
  bool woken = false;
  run_ranks(2, [&](Collective& c) {
    if (c.rank() == 1) {
      std::unique_lock lock(mutex);
      EXPECT_TRUE(changed.wait_for(lock, 20s, [&] { return woken; }));
      return;
    }
    std::vector<float> full(20), shard(10);
    std::thread aborter([&] { c.abort("the node was told to stop"); });
    const auto result = c.all_gather(bytes(full), bytes(shard));
    aborter.join();
    EXPECT_EQ(result.error().code(), Errc::aborted);
    EXPECT_THAT(result.error().message(), ::testing::HasSubstr("the node was told to stop"));
    EXPECT_EQ(c.barrier().error().code(), Errc::aborted);
    const std::lock_guard lock(mutex);
    woken = true;
    changed.notify_all();
  });
}

TEST_P(CollectiveConformanceTest, ALeavingRankFailsItsPeersWithAborted) {
  run_ranks(3, [&](Collective& c) {
    ASSERT_TRUE(c.barrier());
    if (c.rank() == 2) return;  // its collective is destroyed here
    std::vector<float> full(30), shard(10);
    const auto result = c.all_gather(bytes(full), bytes(shard));
    EXPECT_EQ(result.error().code(), Errc::aborted) << result.error().to_string();
  });
}

}  // namespace
}  // namespace troupe::comm
