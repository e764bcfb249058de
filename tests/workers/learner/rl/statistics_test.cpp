#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <thread>

#include "tests/workers/rollout/item_builder.h"
#include "workers/learner/rl/episode_summary.h"
#include "workers/learner/rl/running_statistics.h"

namespace troupe::workers {
namespace {

std::shared_ptr<ThreadGroup> group_of(int world) { return make_thread_group(world, std::chrono::seconds(20)); }

/// Runs `work(rank, collective)` on every rank of a group.
template <class Work>
void on_ranks(int world, Work work) {
  const auto group = group_of(world);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < world; ++rank) {
    threads.emplace_back([&work, group, rank] {
      const auto collective = join_thread_group(group, rank);
      work(rank, *collective);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

/// Items that carry moments of numbers which do not add up exactly.
struct RunningStatisticsTest : ::testing::Test {
  JobConfig job = line_job(Algorithm::ppo, 4);
  std::vector<CollectedItem> items;
  TrajectoryLayout layout;

  void SetUp() override {
    job.rollout.normalize_obs = job.rollout.normalize_reward = true;
    for (std::int64_t number = 0; number < 6; ++number) {
      ItemBuilder builder(job, line_spec(), number);
      Moments observed(2), returned(1);
      const auto n = static_cast<float>(number);
      observed.add(std::vector<float>{0.1f * n, 1e6f / (n + 1), -3.7f * n, std::sin(n), 2.0f / 3, 1e-4f * n});
      returned.add(std::vector<float>{std::cos(n), 0.3f, n * n});
      std::copy(observed.numbers().begin(), observed.numbers().end(), builder.view().observed().begin());
      std::copy(returned.numbers().begin(), returned.numbers().end(), builder.view().returned().begin());
      items.push_back(builder.item(100 + number));
      layout = builder.layout();
    }
  }
  /// What `world` ranks, each with its share of the items, come to; the same on all of them.
  std::string merged(int world) {
    std::vector<std::string> states(static_cast<std::size_t>(world));
    on_ranks(world, [&](int rank, Collective& group) {
      RunningStatistics statistics(job.rollout, 2);
      const std::size_t share = items.size() / static_cast<std::size_t>(world);
      const auto mine = std::span(items).subspan(static_cast<std::size_t>(rank) * share, share);
      for (int step = 0; step < 2; ++step) {
        statistics.merge(layout, mine, 100, static_cast<std::int64_t>(items.size()), group).value();
      }
      states[static_cast<std::size_t>(rank)] = encode(statistics.state());
    });
    for (const std::string& state : states) EXPECT_EQ(state, states.front());
    return states.front();
  }
};

TEST_F(RunningStatisticsTest, DoesNotDependOnTheNumberOfRanks) {
  const std::string one = merged(1);
  EXPECT_EQ(merged(2), one);
  EXPECT_EQ(merged(3), one);
}

TEST_F(RunningStatisticsTest, MergesInOrderOfPositionWhateverTheOrderOfItems) {
  const std::string in_order = merged(1);
  std::swap(items[0], items[4]);
  std::swap(items[1], items[2]);
  EXPECT_EQ(merged(1), in_order);
}

TEST_F(RunningStatisticsTest, CountsWhatTheItemsSaw) {
  const auto alone = join_thread_group(group_of(1), 0);
  RunningStatistics statistics(job.rollout, 2);
  ASSERT_TRUE(statistics.merge(layout, std::span(items).first(1), 100, 1, *alone));
  ASSERT_TRUE(statistics.merge(layout, std::span(items).subspan(1, 1), 101, 1, *alone));
  EXPECT_EQ(statistics.state().observed.count(), 6);
  EXPECT_NEAR(statistics.state().returned.mean(0), (std::cos(0.0) + std::cos(1.0) + 0.3 + 0.3 + 1) / 6, 1e-6);
}

TEST_F(RunningStatisticsTest, RewardsAreScaledByTheDeviationOfTheReturnAndClipped) {
  job.rollout.clip_reward = 3;
  RunningStatistics statistics(job.rollout, 2);
  NormaliserState state{Moments(2), Moments(1)};
  state.returned.add(std::vector<float>{1, 5});  // deviation 2
  statistics.restore(state);
  const at::Tensor scaled = statistics.scale_reward(at::tensor({4.0f, -1.0f, 100.0f, -100.0f}));
  EXPECT_TRUE(scaled.allclose(at::tensor({2.0f, -0.5f, 3.0f, -3.0f}), 0, 1e-6));
}

TEST_F(RunningStatisticsTest, RewardsStayWithoutNormalisation) {
  job.rollout.normalize_reward = false;
  const at::Tensor reward = at::tensor({4.0f, -1e9f});
  EXPECT_TRUE(RunningStatistics(job.rollout, 2).scale_reward(reward).equal(reward));
}

TEST_F(RunningStatisticsTest, ClearingForgets) {
  const auto alone = join_thread_group(group_of(1), 0);
  RunningStatistics statistics(job.rollout, 2);
  const std::string empty = encode(statistics.state());
  ASSERT_TRUE(statistics.merge(layout, items, 100, 6, *alone));
  EXPECT_NE(encode(statistics.state()), empty);
  statistics.clear();
  EXPECT_EQ(encode(statistics.state()), empty);
}

/// Two records in one item, one in the other.
struct EpisodeSummaryTest : ::testing::Test {
  JobConfig job = line_job(Algorithm::ppo, 3);
  ItemBuilder first{job, line_spec()}, second{job, line_spec()};

  static void record(ItemBuilder& item, std::int64_t t, std::size_t row, double total, std::int32_t length,
                     std::uint8_t success) {
    item.view().ended(t)[row] = 1;
    item.view().episode_return(t)[row] = total;
    item.view().episode_length(t)[row] = length;
    item.view().episode_success(t)[row] = success;
  }
  void SetUp() override {
    record(first, 0, 0, 10, 20, 1);
    record(first, 2, 1, 4, 2, 3);
    record(second, 1, 1, -2, 4, 0);
    second.lose(2, 0).view().head().given_up = 6;
    second.view().head().env_steps -= 1;
  }
};

TEST_F(EpisodeSummaryTest, EveryRecordCountsTheSame) {
  EpisodeSummary summary;
  const CollectedItem items[] = {first.item(0), second.item(1)};
  summary.add(first.layout(), items);
  const auto metrics = summary.metrics(true);
  EXPECT_EQ(metrics.at("env/num_trajectories"), 3);
  EXPECT_DOUBLE_EQ(metrics.at("env/return"), 4);
  EXPECT_DOUBLE_EQ(metrics.at("env/episode_len"), 26.0 / 3);
  EXPECT_DOUBLE_EQ(metrics.at("env/reward"), (0.5 + 2 - 0.5) / 3);
  EXPECT_DOUBLE_EQ(metrics.at("env/success_once"), 2.0 / 3);
  EXPECT_DOUBLE_EQ(metrics.at("env/success_at_end"), 1.0 / 3);
  EXPECT_EQ(metrics.at("env/lost_rows"), 1);
  EXPECT_EQ(metrics.at("env/given_up"), 6);
}

TEST_F(EpisodeSummaryTest, StepsAndLossesAreCounted) {
  EpisodeSummary summary;
  const CollectedItem items[] = {first.item(0), second.item(1)};
  summary.add(first.layout(), items);
  EXPECT_EQ(summary.env_steps(), 11);
  EXPECT_EQ(summary.given_up(), 6);
  EXPECT_EQ(summary.lost(), 7);
}

TEST_F(EpisodeSummaryTest, MeansAreAbsentWhereNothingEnded) {
  EpisodeSummary summary;
  const CollectedItem items[] = {ItemBuilder(job, line_spec()).item(0)};
  summary.add(first.layout(), items);
  const auto metrics = summary.metrics(true);
  EXPECT_EQ(metrics.at("env/num_trajectories"), 0);
  EXPECT_EQ(metrics.count("env/return"), 0u);
  EXPECT_EQ(metrics.count("env/success_once"), 0u);
}

TEST_F(EpisodeSummaryTest, SuccessIsAbsentFromEnvironmentsThatDoNotTellIt) {
  EpisodeSummary summary;
  const CollectedItem items[] = {first.item(0)};
  summary.add(first.layout(), items);
  EXPECT_EQ(summary.metrics(false).count("env/success_once"), 0u);
  EXPECT_EQ(summary.metrics(false).count("env/return"), 1u);
}

TEST_F(EpisodeSummaryTest, RanksAddUp) {
  std::vector<std::map<std::string, double>> metrics(2);
  on_ranks(2, [&](int rank, Collective& group) {
    EpisodeSummary summary;
    const CollectedItem items[] = {(rank == 0 ? first : second).item(rank)};
    summary.add(first.layout(), items);
    EXPECT_TRUE(summary.reduce(group));
    metrics[static_cast<std::size_t>(rank)] = summary.metrics(true);
  });
  EXPECT_EQ(metrics[0], metrics[1]);
  EXPECT_DOUBLE_EQ(metrics[0].at("env/return"), 4);
}

}  // namespace
}  // namespace troupe::workers
