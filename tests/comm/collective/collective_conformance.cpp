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
      ASSERT_TRUE(c.all_gather(f32(full), f32(shard))->wait());
      for (int r = 0; r < world; ++r) {
        for (std::size_t i = 0; i < 1000; ++i) ASSERT_EQ(full[static_cast<std::size_t>(r) * 1000 + i], noisy(r, 0, i));
      }
    });
  }
}

TEST_P(CollectiveConformanceTest, ReduceScatterSumsInRankOrderBitForBit) {
  const int world = 3;
  run_ranks(world, [&](Collective& c) {
    std::vector<float> full(3 * 3000), shard(3000);
    for (std::size_t i = 0; i < full.size(); ++i) full[i] = noisy(c.rank(), 1, i);
    ASSERT_TRUE(c.reduce_scatter(f32(shard), f32(full))->wait());
    for (std::size_t i = 0; i < shard.size(); ++i) {
      const std::size_t at = static_cast<std::size_t>(c.rank()) * 3000 + i;
      ASSERT_EQ(shard[i], (noisy(0, 1, at) + noisy(1, 1, at)) + noisy(2, 1, at));
    }
  });
}

TEST_P(CollectiveConformanceTest, ReduceScatterMayWriteIntoItsOwnPartOfTheInput) {
  run_ranks(2, [&](Collective& c) {
    std::vector<float> full(2 * 2048);
    for (std::size_t i = 0; i < full.size(); ++i) full[i] = noisy(c.rank(), 2, i);
    const Buffer own{full.data() + c.rank() * 2048, 2048, DType::f32};
    ASSERT_TRUE(c.reduce_scatter(own, f32(full))->wait());
    for (std::size_t i = 0; i < 2048; ++i) {
      const std::size_t at = static_cast<std::size_t>(c.rank()) * 2048 + i;
      ASSERT_EQ(full[at], noisy(0, 2, at) + noisy(1, 2, at));
    }
  });
}

TEST_P(CollectiveConformanceTest, ManyOperationsUnderWayKeepTheirOrder) {
  run_ranks(2, [&](Collective& c) {
    std::vector<std::vector<float>> shards, fulls;
    std::vector<std::unique_ptr<PendingCollective>> pending;
    for (int k = 0; k < 12; ++k) {
      shards.emplace_back(257, static_cast<float>(100 * k + c.rank()));
      fulls.emplace_back(2 * 257, -1.0f);
    }
    for (std::size_t k = 0; k < 12; ++k) pending.push_back(c.all_gather(f32(fulls[k]), f32(shards[k])));
    for (std::size_t k = 0; k < 12; ++k) {
      ASSERT_TRUE(pending[k]->wait());
      EXPECT_TRUE(pending[k]->is_done());
      EXPECT_EQ(fulls[k][256], static_cast<float>(100 * k));
      EXPECT_EQ(fulls[k][257], static_cast<float>(100 * k + 1));
    }
  });
}

TEST_P(CollectiveConformanceTest, AllReduceGivesEveryRankTheSameSumAndMaximum) {
  run_ranks(3, [&](Collective& c) {
    std::vector<double> sums = {0.1 * (c.rank() + 1), 1.0},
                        maxima = {static_cast<double>(-c.rank()), static_cast<double>(c.rank())};
    ASSERT_TRUE(c.all_reduce_sum(f64(sums)));
    ASSERT_TRUE(c.all_reduce_max(f64(maxima)));
    EXPECT_EQ(sums[0], (0.1 * 1 + 0.1 * 2) + 0.1 * 3);
    EXPECT_EQ(sums[1], 3.0);
    EXPECT_THAT(maxima, ::testing::ElementsAre(0.0, 2.0));
  });
}

TEST_P(CollectiveConformanceTest, BroadcastAndBarrierReachEveryRank) {
  std::atomic<int> arrived{0};
  run_ranks(3, [&](Collective& c) {
    std::vector<double> value = {c.rank() == 2 ? 42.0 : 0.0};
    ASSERT_TRUE(c.broadcast(f64(value), 2));
    EXPECT_EQ(value[0], 42.0);
    arrived.fetch_add(1);
    ASSERT_TRUE(c.barrier());
    EXPECT_EQ(arrived.load(), 3);
  });
}

TEST_P(CollectiveConformanceTest, AWrongShardSizeIsRefused) {
  run_ranks(1, [&](Collective& c) {
    std::vector<float> full(7), shard(3);
    const auto result = c.all_gather(f32(full), f32(shard))->wait();
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
        const auto result = c.all_gather(f32(full), f32(shard))->wait();
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
    const auto pending = c.all_gather(f32(full), f32(shard));
    std::thread aborter([&] { c.abort("the node was told to stop"); });
    const auto result = pending->wait();
    aborter.join();
    EXPECT_EQ(result.error().code(), Errc::aborted);
    EXPECT_THAT(result.error().message(), ::testing::HasSubstr("the node was told to stop"));
    EXPECT_TRUE(pending->is_done());
    EXPECT_EQ(c.all_gather(f32(full), f32(shard))->wait().error().code(), Errc::aborted);
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
    const auto result = c.all_gather(f32(full), f32(shard))->wait();
    EXPECT_EQ(result.error().code(), Errc::aborted) << result.error().to_string();
  });
}

}  // namespace
}  // namespace troupe::comm
