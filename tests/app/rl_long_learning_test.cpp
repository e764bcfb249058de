// Learning, with fixed seeds and step budgets, of recipes that take long.
#include "tests/app/rl_learning.h"

namespace troupe::app {
namespace {

TEST_F(RlLearningTest, AsynchronousPpoSolvesCartPoleOnAScriptedSchedule) {
  EXPECT_GT(learnt("runs", {"rl_cartpole_async", "algorithm.deterministic=true"}, "eval/return"), 475);
}

TEST_F(RlLearningTest, AMemoryFindsTheWayThroughTheTMaze) {
  EXPECT_GE(learnt("runs", {"rl_tmaze_gru"}, "eval/success_once"), 0.95);
}

TEST_F(RlLearningTest, WithoutAMemoryTheWayIsGuessed) {
  EXPECT_LE(learnt("runs", {"rl_tmaze_gru", "policy.memory=none"}, "eval/success_once"), 0.6);
}

}  // namespace
}  // namespace troupe::app
