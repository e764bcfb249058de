// Learning, with fixed seeds and step budgets: each recipe reaches what its first lines say.
#include "tests/app/rl_fixture.h"

namespace troupe {
namespace {

class RlLearningTest : public RlRunTest {
 protected:
  /// The last value of a metric after `troupe run WORDS`.
  double learnt(const std::string& root, const Words& words, const std::string& metric) const {
    const ProgramEnd end = run_program(Words{"run"} + words + Words{"job.run_root=" + (dir_ / root)}, {.cwd = dir_.path(), .env = {}, .deadline = 300s});
    EXPECT_EQ(end.exit_code, 0) << end.text();
    const auto values = curve(root, metric);
    EXPECT_FALSE(values.empty()) << end.text();
    return values.empty() ? 0 : values.rbegin()->second;
  }
};

TEST_F(RlLearningTest, QuickstartSolvesCartPole) {
  EXPECT_GT(learnt("runs", {"quickstart:rl"}, "eval/return"), 475);
  EXPECT_LE(curve("runs", "env/total_steps").rbegin()->second, 200'000);
}

TEST_F(RlLearningTest, SoftActorCriticSwingsThePendulumUp) {
  EXPECT_GE(learnt("runs", {"rl_pendulum_sac"}, "eval/return"), -200);
  EXPECT_LE(curve("runs", "env/total_steps").rbegin()->second, 20'500);
}

TEST_F(RlLearningTest, GroupRelativeChunksReachTheGoal) { EXPECT_GE(learnt("runs", {"rl_reach_grpo"}, "eval/success_once"), 0.9); }

TEST_F(RlLearningTest, AsynchronousPpoSolvesCartPoleOnAScriptedSchedule) {
  EXPECT_GT(learnt("runs", {"rl_cartpole_async", "algorithm.deterministic=true"}, "eval/return"), 475);
}

TEST_F(RlLearningTest, AsynchronousPpoThatRunsFreelySolvesCartPoleInTwoOfThreeSeeds) {
  int solved = 0;
  for (const char* seed : {"1", "2", "3"}) {
    if (learnt(std::string("seed") + seed, {"rl_cartpole_async", std::string("job.seed=") + seed}, "eval/return") > 475) ++solved;
  }
  EXPECT_GE(solved, 2);
}

}  // namespace
}  // namespace troupe
