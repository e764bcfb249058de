#include "workers/inference/agent/episode_runner.h"

#include <gmock/gmock.h>

#include <atomic>
#include <latch>
#include <memory>
#include <semaphore>
#include <stdexcept>

#include "env/single_env.h"
#include "tests/support/lottery_env.h"
#include "tests/support/team_env.h"
#include "tests/workers/inference/agent/untrained_agent.h"
#include "tests/workers/rollout/scripted_net.h"

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

TEST_F(EpisodeRunnerTest, ASmallPolicyTakesOneOfLibTorchsThreads) {
  const int before = at::get_num_threads();
  at::set_num_threads(2);
  const JobConfig job = small_rl_job("CartPole-v1");
  auto agent = make_agent(job);
  ASSERT_TRUE(agent);
  const auto net = std::make_shared<ScriptedNet>(ScriptedNet::Options{});
  agent->policy = net;
  ASSERT_TRUE(run_episodes(*agent, job, untrained_weights(*net, 3), {.episodes = 1, .parallel = 1}));
  EXPECT_EQ(net->threads(), 1);
  EXPECT_EQ(at::get_num_threads(), 2) << "as it was";
  at::set_num_threads(before);
}

TEST_F(EpisodeRunnerTest, ATeamPlaysOneEpisodeASeedAndItsActionsGiveTheSameReturnAgain) {
  TeamEnv::add();
  const auto records = play(TeamEnv::kId, {.episodes = 4, .parallel = 3, .keep_actions = 4});
  ASSERT_TRUE(records) << records.error().message();
  ASSERT_EQ(records->size(), 4u);
  for (const EvaluationEpisode& record : *records) {
    EXPECT_EQ(record.lost, "");
    ASSERT_EQ(record.actions.size(), static_cast<std::size_t>(3 * record.length));
    SingleEnv env = SingleEnv::make(make_env_factory(TeamEnv::kId).value()).value();
    env.begin(evaluation_seed(record.seed)).value();
    for (std::int64_t step = 0; step < record.length; ++step)
      env.step(std::span(record.actions).subspan(static_cast<std::size_t>(3 * step), 3)).value();
    EXPECT_EQ(env.view().done()[0], 1);
    EXPECT_EQ(env.view().episode_return()[0], record.total_return);
  }
}

TEST_F(EpisodeRunnerTest, AlgorithmsThatKnowOneAgentAreRefusedByName) {
  TeamEnv::add();
  JobConfig job = small_rl_job(TeamEnv::kId);
  const auto why = [&] {
    const auto agent = make_agent(job);
    return agent ? "" : agent.error().message();
  };
  EXPECT_EQ(why(), "");
  job.algorithm.name = Algorithm::sac;
  EXPECT_EQ(why(),
            "algorithm.name is sac, which keeps transitions of one agent an environment (wanted ppo, decoupled_ppo or "
            "vtrace); team-test-v1 has 3 agents");
  job.algorithm.name = Algorithm::grpo;
  EXPECT_THAT(why(), ::testing::StartsWith("algorithm.name is grpo, which compares environments, not their agents"));
  job.algorithm.name = Algorithm::ppo;
  job.job.kind = JobKind::sft;
  EXPECT_EQ(why(), "env.id: demonstrations are of one agent; team-test-v1 has 3 agents");
}

TEST_F(EpisodeRunnerTest, AMemoryIsEmptyWhereAnEpisodeBegins) {
  JobConfig job = small_rl_job("Pendulum-v1");
  job.policy.memory = PolicyMemory::gru;
  const auto agent = make_agent(job);
  ASSERT_TRUE(agent) << agent.error().message();
  const auto actions_of_seed_502 = [&](std::int64_t first_seed) {
    const EpisodeOptions options{
        .episodes = 503 - first_seed, .first_seed = first_seed, .parallel = 1, .keep_actions = 503 - first_seed};
    const auto records = run_episodes(*agent, job, untrained_weights(*agent->policy, 3), options);
    EXPECT_TRUE(records);
    return records->back().actions;
  };
  const std::vector<float> alone = actions_of_seed_502(502);
  EXPECT_FALSE(alone.empty());
  EXPECT_EQ(actions_of_seed_502(500), alone) << "as the third episode of its environment";
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

/// All but `bad` are what their seeds say.
void expect_played(const Records& records, std::int64_t bad) {
  for (const EvaluationEpisode& record : records) {
    if (record.seed == bad) continue;
    EXPECT_EQ(record.lost, "");
    EXPECT_EQ(record.total_return, Lottery::return_of(evaluation_seed(record.seed)));
    EXPECT_EQ(record.length, Lottery::length_of(evaluation_seed(record.seed)));
  }
}

TEST_F(EpisodeRunnerTest, AnEpisodeWhoseEnvironmentThrowsTwiceIsLost) {
  const std::uint64_t bad = evaluation_seed(1'000'003);
  std::atomic<int> tries = 0;
  Lottery::on_step() = [&](std::uint64_t seed, std::int64_t) {
    if (seed != bad) return;
    ++tries;
    throw std::runtime_error("the wheel came off");
  };
  const auto records = play("lottery-test-v1", {.episodes = 8, .parallel = 3, .keep_actions = 8});
  ASSERT_EQ(records->size(), 8u);
  EXPECT_THAT((*records)[3].lost, ::testing::HasSubstr("the wheel came off"));
  EXPECT_EQ((*records)[3].length, 0);
  EXPECT_THAT((*records)[3].actions, ::testing::IsEmpty());
  EXPECT_EQ(tries, 2);
  expect_played(*records, 1'000'003);
}

TEST_F(EpisodeRunnerTest, AnEpisodeWhoseEnvironmentThrowsOnceIsPlayedAgain) {
  const std::uint64_t bad = evaluation_seed(1'000'003);
  std::atomic<bool> has_thrown = false;
  Lottery::on_step() = [&](std::uint64_t seed, std::int64_t) {
    if (seed == bad && !has_thrown.exchange(true)) throw std::runtime_error("the wheel came off");
  };
  const auto records = play("lottery-test-v1", {.episodes = 8, .parallel = 3});
  ASSERT_EQ(records->size(), 8u);
  EXPECT_TRUE(has_thrown);
  expect_played(*records, -1);
}

/// Waits in the first step of an episode (seed -1: of any), as often as `times` says. Outlives the test: the threads
/// that wait are left behind and go on when they are let go.
class HangingLottery {
 public:
  HangingLottery(std::int64_t seed, int times) : times_(times) {
    Env::add();
    Env::on_step() = [this, any = seed < 0, bad = evaluation_seed(seed)](std::uint64_t of, std::int64_t step) {
      if ((!any && of != bad) || step > 1 || times_.fetch_sub(1) <= 0) return;
      let_go_.wait();
      gone_.release();
    };
  }
  void let_go(int threads) {
    let_go_.count_down();
    while (threads-- > 0) EXPECT_TRUE(gone_.try_acquire_for(std::chrono::seconds(60)));
    Env::on_step() = {};
  }

 private:
  using Env = LotteryEnv<true, true>;
  std::atomic<int> times_;
  std::latch let_go_{1};
  std::counting_semaphore<8> gone_{0};
};

/// Long for a step of healthy environments, however busy the machine is.
constexpr std::chrono::milliseconds kShortStep{1000};

TEST_F(EpisodeRunnerTest, AnEpisodeWhoseEnvironmentHangsTwiceIsLost) {
  for (const std::int64_t threads : {1, 2}) {
    static std::vector<std::unique_ptr<HangingLottery>> all;
    HangingLottery& lottery = *all.emplace_back(std::make_unique<HangingLottery>(1'000'001, 2));
    const auto records =
        play("hanging-lottery-test-v1", {.episodes = 6, .parallel = 4, .threads = threads, .step_timeout = kShortStep});
    lottery.let_go(2);
    ASSERT_EQ(records->size(), 6u);
    EXPECT_THAT((*records)[1].lost, ::testing::HasSubstr("env.step_timeout_s"));
    expect_played(*records, 1'000'001);
  }
}

TEST_F(EpisodeRunnerTest, AnEpisodeWhoseEnvironmentHangsOnceIsPlayedAgain) {
  static HangingLottery lottery(1'000'002, 1);
  const auto records =
      play("hanging-lottery-test-v1", {.episodes = 6, .parallel = 4, .threads = 1, .step_timeout = kShortStep});
  lottery.let_go(1);
  ASSERT_EQ(records->size(), 6u);
  expect_played(*records, -1);
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

TEST_F(EpisodeRunnerTest, BehindThreeHangsNothingMoreIsPlayed) {
  static HangingLottery lottery(-1, 8);
  const auto records =
      play("hanging-lottery-test-v1", {.episodes = 9, .parallel = 1, .threads = 1, .step_timeout = kShortStep / 4});
  lottery.let_go(3);
  ASSERT_EQ(records->size(), 9u);
  for (const EvaluationEpisode& record : *records) EXPECT_NE(record.lost, "");
  EXPECT_THAT(records->back().lost, ::testing::HasSubstr("hung 3 times"));
}

TEST_F(EpisodeRunnerTest, AnEvaluationMayLoseAll) {
  Lottery::on_step() = [](std::uint64_t, std::int64_t) { throw std::runtime_error("the wheel came off"); };
  const auto records = play("lottery-test-v1", {.episodes = 5, .parallel = 2});
  ASSERT_EQ(records->size(), 5u);
  const auto m = evaluation_metrics(*records, true);
  EXPECT_EQ(m.at("eval/lost"), 5);
  EXPECT_EQ(m.count("eval/return"), 0u) << "no number where nothing was played";
}

TEST_F(EpisodeRunnerTest, AnEvaluationGoesOnWithWhatWasEndedAndRepeatsSuspectsAlone) {
  std::vector<std::pair<std::int64_t, bool>> began;
  std::vector<std::int64_t> ended;
  EpisodeOptions options{.episodes = 6, .first_seed = 500, .parallel = 3};
  options.ended_before = {{.seed = 501, .total_return = -1, .length = 1}, {.seed = 505, .lost = "it was repeated"}};
  options.suspects = {500, 503};
  options.on_begin = [&](std::int64_t seed, bool repeats) { began.emplace_back(seed, repeats); };
  options.on_end = [&](const EvaluationEpisode& episode) { ended.push_back(episode.seed); };
  const auto records = play("lottery-test-v1", options);
  EXPECT_THAT(began, ::testing::ElementsAre(std::pair(502, false), std::pair(504, false), std::pair(500, true),
                                            std::pair(503, true)));
  EXPECT_THAT(ended, ::testing::UnorderedElementsAre(500, 502, 503, 504));
  ASSERT_EQ(records->size(), 6u);
  EXPECT_EQ((*records)[1].total_return, -1);
  EXPECT_EQ((*records)[5].lost, "it was repeated");
  for (const std::size_t i : {0, 2, 3, 4})
    EXPECT_EQ((*records)[i].total_return, Lottery::return_of(evaluation_seed((*records)[i].seed)));
}

TEST_F(EpisodeRunnerTest, AnEvaluationIsCutOffBeforeTheNextStep) {
  int asked = 0;
  EpisodeOptions options{.episodes = 6, .parallel = 2};
  options.is_cancelled = [&] { return ++asked == 3; };
  EXPECT_EQ(play("lottery-test-v1", options).error().code(), Errc::cancelled);
}

TEST(EvaluationMetricsTest, WhatWasLostCountsInNoMean) {
  const auto m = evaluation_metrics({{.seed = 1, .total_return = 2, .length = 4, .success_once = true},
                                     {.seed = 2, .lost = "the wheel came off"},
                                     {.seed = 3, .total_return = 4, .length = 4}},
                                    true);
  EXPECT_EQ(m.at("eval/num_trajectories"), 2);
  EXPECT_EQ(m.at("eval/lost"), 1);
  EXPECT_EQ(m.at("eval/return"), 3);
  EXPECT_EQ(m.at("eval/return_std"), 1);
  EXPECT_EQ(m.at("eval/return_min"), 2);
  EXPECT_EQ(m.at("eval/success_once"), 0.5);
}

}  // namespace
}  // namespace troupe::workers
