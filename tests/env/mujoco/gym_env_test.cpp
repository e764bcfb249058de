#include "env/mujoco/gym_env.h"

#include <gmock/gmock.h>

#include <cmath>

#include "env/mujoco/gym_task.h"
#include "tests/env/mujoco/gym_env_case.h"
#include "tests/env/solo_env.h"

namespace troupe::env {
namespace {

using ::testing::HasSubstr;

std::vector<std::string> every_id() {
  std::vector<std::string> ids;
  for (const GymTask& task : gym_tasks()) ids.emplace_back(task.id);
  return ids;
}

TEST(GymEnvTest, SetIsTheOneOfTheSpecification) {
  EXPECT_EQ(gym_tasks().size(), 19u);  // nine tasks in v4 and v5, and Pusher-v5
}

class GymTaskTest : public ::testing::TestWithParam<std::string> {};

TEST_P(GymTaskTest, FloatObservationIsTheRoundedDoubleOne) {
  GymEnvCase exact(GetParam());
  SoloEnv env(GetParam());
  ASSERT_EQ(env.spec().observation[0].dtype, EnvDType::f32);
  ASSERT_TRUE(env.reset(3));
  ASSERT_TRUE(exact->reset(3, exact.slot()));
  const std::vector<float> action(static_cast<std::size_t>(env.spec().action.size), 0.25f);
  for (int step = 0; step < 5; ++step) {
    ASSERT_TRUE(env.step(action));
    exact.step(action);
    for (std::size_t i = 0; i < exact.observation().size(); ++i)
      ASSERT_EQ(static_cast<float>(env.element(0, i)), static_cast<float>(exact.observation()[i])) << i;
    EXPECT_EQ(env.reward(), exact.reward);
  }
}

TEST_P(GymTaskTest, ActionOfAWrongSizeIsRefused) {
  GymEnvCase env(GetParam());
  ASSERT_TRUE(env->reset(1, env.slot()));
  const auto refused = env->step(std::vector<float>(40), env.slot());
  EXPECT_EQ(refused.error().code(), Errc::invalid_argument);
  EXPECT_THAT(refused.error().message(), HasSubstr("40 actions"));
}

TEST_P(GymTaskTest, DivergedSimulationEndsItsEpisodeWithoutReward) {
  GymEnvCase env(GetParam());
  const std::vector<double> qpos(env->model().qpos0, env->model().qpos0 + env->model().nq),
      qvel(static_cast<std::size_t>(env->model().nv), 1e11);
  ASSERT_TRUE(env->set_state(qpos, qvel));
  env.step(std::vector<float>(static_cast<std::size_t>(env->model().nu)));
  EXPECT_TRUE(env.terminated);
  EXPECT_EQ(env.reward, 0);
  EXPECT_EQ(env.info("diverged"), 1);
  for (const double v : env.observation()) EXPECT_TRUE(std::isfinite(v));
}

TEST_P(GymTaskTest, StateOfAWrongSizeIsRefused) {
  GymEnvCase env(GetParam());
  EXPECT_EQ(env->set_state(std::vector<double>(1), std::vector<double>(2)).error().code(), Errc::invalid_argument);
}

TEST_P(GymTaskTest, StateHashFollowsTheSeedAndTheActions) {
  GymEnvCase a(GetParam()), b(GetParam());
  const std::vector<float> action(static_cast<std::size_t>(a->model().nu), 0.5f), other(action.size(), -0.5f);
  const auto run = [](GymEnvCase& env, std::uint64_t seed, const std::vector<float>& push) {
    EXPECT_TRUE(env->reset(seed, env.slot()));
    for (int step = 0; step < 3; ++step) env.step(push);
    return env->state_hash();
  };
  const auto reference = run(a, 7, action);
  EXPECT_EQ(run(b, 7, action), reference);
  EXPECT_EQ(run(a, 7, action), reference);  // nothing is left of the episode before, its warm start among it
  EXPECT_NE(run(b, 7, other), reference);
  EXPECT_NE(run(b, 8, action), reference);
}

INSTANTIATE_TEST_SUITE_P(All, GymTaskTest, ::testing::ValuesIn(every_id()), testing::id_name);

TEST(GymFactoryTest, UnknownOptionIsRefusedWithThoseThatThereAre) {
  EXPECT_THAT(
      make_env_factory("Ant-v5", {.profile = "", .options = {{"obs_type", "f64"}}, .max_steps = 0}).error().message(),
      HasSubstr("obs_dtype"));
}

TEST(GymFactoryTest, UnknownDtypeIsRefused) {
  EXPECT_THAT(
      make_env_factory("Ant-v5", {.profile = "", .options = {{"obs_dtype", "f16"}}, .max_steps = 0}).error().message(),
      HasSubstr("f16"));
}

TEST(GymFactoryTest, TimeLimitOfTheJobReplacesTheTasks) {
  EXPECT_EQ(make_env_factory("Reacher-v5").value()->spec().max_steps, 50);
  EXPECT_EQ(make_env_factory("Reacher-v5", {.profile = "", .options = {}, .max_steps = 7}).value()->spec().max_steps,
            7);
}

TEST(ControlCostTest, SumIsNumPysInFloat32) {
  // 1e8 swallows each 1 added to it alone, but not the sum of a lane that holds none
  const std::vector<float> action = {1e4f, 1, 1, 1, 1, 1, 1, 1, 1};
  EXPECT_EQ(control_cost(1, action), static_cast<double>(((1e8f + 1) + 2) + 4 + 1));
  EXPECT_EQ(control_cost(0.5f, std::vector<float>{2, 3}), 6.5);
}

}  // namespace
}  // namespace troupe::env
