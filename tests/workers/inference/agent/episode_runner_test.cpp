#include "workers/inference/agent/episode_runner.h"

#include <gmock/gmock.h>

#include <latch>
#include <stdexcept>

#include "tests/support/lottery_env.h"
#include "tests/workers/inference/agent/untrained_agent.h"

namespace troupe::workers {
namespace {

using Records = std::vector<EvaluationEpisode>;
using Lottery = LotteryEnv<true>;
using BlindLottery = LotteryEnv<false>;

class EpisodeRunnerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Lottery::add();
    BlindLottery::add();
    Lottery::on_step() = {};
  }
  void TearDown() override { Lottery::on_step() = {}; }

  static Result<Records> play(const std::string& env, const EpisodeOptions& options) {
    const JobConfig job = small_rl_job(env);
    auto agent = make_agent(job);
    if (!agent) return agent.error();
    return run_episodes(*agent, job, untrained_weights(*agent->policy, 3), options);
  }
  static std::vector<std::int64_t> kept(const Records& records) {
    std::vector<std::int64_t> seeds;
    for (const auto& record : records) {
      if (!record.actions.empty()) seeds.push_back(record.seed);
    }
    return seeds;
  }
};

TEST_F(EpisodeRunnerTest, EverySeedIsPlayedOnceHoweverManyEnvironmentsThereAre) {
  for (const std::int64_t parallel : {1, 3, 16, 40}) {
    const auto records = play("lottery-test-v1", {.episodes = 23, .first_seed = 500, .parallel = parallel});
    ASSERT_EQ(records->size(), 23u);
    for (std::size_t i = 0; i < records->size(); ++i) {
      const EvaluationEpisode& record = (*records)[i];
      const std::uint64_t seed = evaluation_seed(record.seed);
      EXPECT_EQ(record.seed, 500 + static_cast<std::int64_t>(i));
      EXPECT_EQ(record.length, Lottery::length_of(seed));
      EXPECT_EQ(record.total_return, Lottery::return_of(seed));
      EXPECT_EQ(record.success_once, Lottery::succeeds(seed));
      EXPECT_EQ(record.success_at_end, Lottery::succeeds(seed));
    }
  }
}

TEST_F(EpisodeRunnerTest, RecordsDoNotDependOnTheNumberOfThreads) {
  const EpisodeOptions options{.episodes = 12, .parallel = 5, .keep_actions = 12};
  EpisodeOptions more = options;
  more.threads = 2;
  const auto one = play("CartPole-v1", options), two = play("CartPole-v1", more);
  ASSERT_EQ(one->size(), two->size());
  for (std::size_t i = 0; i < one->size(); ++i) {
    EXPECT_EQ((*one)[i].total_return, (*two)[i].total_return);
    EXPECT_EQ((*one)[i].actions, (*two)[i].actions);
    EXPECT_EQ((*one)[i].actions.size(), static_cast<std::size_t>((*one)[i].length));
  }
}

TEST_F(EpisodeRunnerTest, KeepsTheActionsOfTheFirstFailures) {
  const auto records = play("lottery-test-v1", {.episodes = 30, .parallel = 4, .keep_actions = 5});
  std::vector<std::int64_t> failed;
  for (const auto& record : *records) {
    if (!record.success_once && failed.size() < 5) failed.push_back(record.seed);
  }
  ASSERT_EQ(failed.size(), 5u);
  EXPECT_EQ(kept(*records), failed);
}

TEST_F(EpisodeRunnerTest, KeepsTheActionsOfTheLowestReturnsWhereSuccessIsUnknown) {
  const auto records = play("blind-lottery-test-v1", {.episodes = 30, .parallel = 4, .keep_actions = 3});
  Records sorted = *records;
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.total_return < b.total_return; });
  std::vector<std::int64_t> lowest = {sorted[0].seed, sorted[1].seed, sorted[2].seed};
  std::sort(lowest.begin(), lowest.end());
  EXPECT_EQ(kept(*records), lowest);
}

TEST_F(EpisodeRunnerTest, KeepsNoActionsUnlessAsked) {
  EXPECT_THAT(kept(*play("lottery-test-v1", {.episodes = 8})), ::testing::IsEmpty());
}

TEST_F(EpisodeRunnerTest, AnEnvironmentThatThrowsIsNamedWithItsSeed) {
  const std::uint64_t bad = evaluation_seed(1'000'003);
  Lottery::on_step() = [bad](std::uint64_t seed, std::int64_t) {
    if (seed == bad) throw std::runtime_error("the wheel came off");
  };
  const auto records = play("lottery-test-v1", {.episodes = 8});
  EXPECT_THAT(records.error().message(), ::testing::AllOf(::testing::HasSubstr("the wheel came off"),
                                                          ::testing::HasSubstr("evaluation seed 1000003")));
}

TEST_F(EpisodeRunnerTest, AnEnvironmentThatHangsIsGivenUpAfterItsDeadline) {
  // Outlives the test: the thread that waits is left behind and goes on when it is let go.
  static std::latch let_go(1), gone(1);
  const std::uint64_t bad = evaluation_seed(1'000'001);
  using HangingLottery = LotteryEnv<true, true>;
  HangingLottery::add();
  HangingLottery::on_step() = [bad](std::uint64_t seed, std::int64_t step) {
    if (seed != bad || step > 1) return;
    let_go.wait();
    gone.count_down();
  };
  const auto records =
      play("hanging-lottery-test-v1", {.episodes = 4, .threads = 2, .step_timeout = std::chrono::milliseconds(20)});
  let_go.count_down();
  gone.wait();
  EXPECT_EQ(records.error().code(), Errc::deadline_exceeded);
  EXPECT_THAT(records.error().message(), ::testing::HasSubstr("env.step_timeout_s"));
}

TEST(EvaluationMetricsTest, AreMeansOverEpisodes) {
  const auto m =
      evaluation_metrics({{.seed = 1, .total_return = 2, .length = 4, .success_once = true, .success_at_end = false},
                          {.seed = 2, .total_return = 6, .length = 2, .success_once = true, .success_at_end = true}},
                         true);
  EXPECT_EQ(m.at("eval/num_trajectories"), 2);
  EXPECT_EQ(m.at("eval/return"), 4);
  EXPECT_EQ(m.at("eval/return_std"), 2);
  EXPECT_EQ(m.at("eval/return_min"), 2);
  EXPECT_EQ(m.at("eval/return_max"), 6);
  EXPECT_EQ(m.at("eval/episode_len"), 3);
  EXPECT_EQ(m.at("eval/reward"), 1.75);
  EXPECT_EQ(m.at("eval/success_once"), 1);
  EXPECT_EQ(m.at("eval/success_at_end"), 0.5);
}

}  // namespace
}  // namespace troupe::workers
