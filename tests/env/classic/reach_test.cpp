#include "env/classic/reach.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/env/pool_run.h"

namespace troupe::testing {
namespace {

TEST(ReachTest, GoalsLieBetweenTheNearestAndTheFarthest) {
  SoloEnv env(std::make_unique<Reach>());
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    env.reset(seed).value();
    const double distance = std::hypot(env.element(0, 2), env.element(0, 3));
    EXPECT_GE(distance, 0.3 - 1e-6);
    EXPECT_LE(distance, 1 + 1e-6);
  }
}

TEST(ReachTest, GoingStraightToTheGoalSucceedsBeforeTheLimit) {
  SoloEnv env(std::make_unique<Reach>());
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    env.reset(seed).value();
    int steps = 0;
    while (!env.terminated() && steps < 50) {
      EXPECT_EQ(env.reward(), 0);
      const auto velocity = [&](std::size_t i) { return static_cast<float>(10 * env.element(0, i)); };
      env.step(std::vector<float>{velocity(2), velocity(3)}).value();
      ++steps;
    }
    EXPECT_TRUE(env.success());
    EXPECT_EQ(env.reward(), 1);
    EXPECT_LE(steps, 11);
    env.reset(seed).value();  // the reward of the last episode is not read again
    env.step(std::vector<float>{0, 0}).value();
  }
}

// What GRPO learns from: an untrained Gaussian policy succeeds now and then, neither never nor always.
TEST(ReachTest, AnUntrainedPolicySucceedsInSomeEpisodes) {
  auto pool =
      make_pool(factory_of("reach-v1"), {.num_envs = 200, .chunk = 4, .reset_mode = ResetMode::episode, .seed = 1});
  begin(*pool);
  double succeeded = 0;
  for (std::uint64_t s = 0; s < 13; ++s) {
    CounterRng rng(5, 4, s);
    std::vector<float> actions(200 * 4 * 2);
    for (float& a : actions) a = rng.normal();
    const auto block = pool->step(0, actions).value();
    for (const auto bits : block.view().episode_success()) succeeded += bits & 1;
  }
  EXPECT_GT(succeeded / 200, 0.05);
  EXPECT_LT(succeeded / 200, 0.4);
}

}  // namespace
}  // namespace troupe::testing
