// Learning, with fixed seeds and step budgets: each recipe reaches what its first lines say.
#include "tests/app/rl_learning.h"

namespace troupe::app {
namespace {

TEST_F(RlLearningTest, QuickstartSolvesCartPole) {
  EXPECT_GT(learnt("runs", {"quickstart:rl"}, "eval/return"), 475);
  EXPECT_LE(curve("runs", "env/total_steps").rbegin()->second, 200'000);
}

TEST_F(RlLearningTest, SoftActorCriticSwingsThePendulumUp) {
  EXPECT_GE(learnt("runs", {"rl_pendulum_sac"}, "eval/return"), -200);
  EXPECT_LE(curve("runs", "env/total_steps").rbegin()->second, 20'500);
}

TEST_F(RlLearningTest, GroupRelativeChunksReachTheGoal) {
  EXPECT_GE(learnt("runs", {"rl_reach_grpo"}, "eval/success_once"), 0.9);
}

TEST_F(RlLearningTest, VtraceSolvesCartPoleOnAScriptedSchedule) {
  EXPECT_GT(learnt("runs", {"rl_cartpole_vtrace", "algorithm.deterministic=true"}, "eval/return"), 475);
  EXPECT_LE(curve("runs", "env/total_steps").rbegin()->second, 200'000);
}

}  // namespace
}  // namespace troupe::app
