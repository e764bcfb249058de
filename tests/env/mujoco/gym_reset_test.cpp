// What a reset draws: the noise of each task inside its bounds, and in Gymnasium's order of fields.
#include <gtest/gtest.h>

#include <cmath>

#include "env/episode_seed.h"
#include "tests/env/mujoco/gym_env_case.h"

namespace troupe::env {
namespace {

struct Noise {
  const char* id;
  double pos, vel;
  bool normal_velocities = false;
};
std::ostream& operator<<(std::ostream& out, const Noise& noise) { return out << noise.id; }

class GymResetTest : public ::testing::TestWithParam<Noise> {};

TEST_P(GymResetTest, NoiseIsThatOfTheTaskInTheOrderPositionsThenVelocities) {
  GymEnvCase env(GetParam().id);
  for (const std::uint64_t seed : {1ULL, 2ULL, 99ULL}) {
    ASSERT_TRUE(env->reset(seed, env.slot()));
    CounterRng rng(seed, env_stream::reset, 0);
    for (int i = 0; i < env->model().nq; ++i) {
      ASSERT_EQ(env->data().qpos[i], env->model().qpos0[i] + rng.uniform(-GetParam().pos, GetParam().pos))
          << "qpos " << i;
    }
    for (int i = 0; i < env->model().nv; ++i) {
      const double draw = GetParam().normal_velocities ? GetParam().vel * static_cast<double>(rng.normal())
                                                       : rng.uniform(-GetParam().vel, GetParam().vel);
      ASSERT_EQ(env->data().qvel[i], draw) << "qvel " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Tasks, GymResetTest,
                         ::testing::Values(Noise{"HalfCheetah-v4", 0.1, 0.1, true},
                                           Noise{"HalfCheetah-v5", 0.1, 0.1, true}, Noise{"Ant-v4", 0.1, 0.1, true},
                                           Noise{"Ant-v5", 0.1, 0.1, true}, Noise{"Hopper-v5", 5e-3, 5e-3},
                                           Noise{"Walker2d-v5", 5e-3, 5e-3}, Noise{"Humanoid-v5", 1e-2, 1e-2},
                                           Noise{"Swimmer-v5", 0.1, 0.1}, Noise{"InvertedPendulum-v5", 0.01, 0.01},
                                           Noise{"InvertedDoublePendulum-v5", 0.1, 0.1, true}));

TEST(GymReacherResetTest, TargetIsInsideTheCircleAndStandsStill) {
  GymEnvCase env("Reacher-v5");
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    ASSERT_TRUE(env->reset(seed, env.slot()));
    const mjData& d = env->data();
    EXPECT_LT(std::hypot(d.qpos[2], d.qpos[3]), 0.2);
    EXPECT_LE(std::abs(d.qpos[0]), 0.1);
    EXPECT_LE(std::abs(d.qvel[0]), 0.005);
    EXPECT_EQ(d.qvel[2], 0);
    EXPECT_EQ(d.qvel[3], 0);
  }
}

TEST(GymPusherResetTest, ObjectIsApartFromTheGoalAndTheArmIsAtItsStart) {
  GymEnvCase env("Pusher-v5");
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    ASSERT_TRUE(env->reset(seed, env.slot()));
    const mjData& d = env->data();
    for (int i = 0; i < 7; ++i) EXPECT_EQ(d.qpos[i], 0);
    EXPECT_GT(std::hypot(d.qpos[7], d.qpos[8]), 0.17);
    EXPECT_TRUE(-0.3 <= d.qpos[7] && d.qpos[7] <= 0);
    EXPECT_TRUE(-0.2 <= d.qpos[8] && d.qpos[8] <= 0.2);
    for (int i = 9; i < 11; ++i) EXPECT_EQ(d.qpos[i], 0);
    for (int i = 7; i < 11; ++i) EXPECT_EQ(d.qvel[i], 0);
  }
}

}  // namespace
}  // namespace troupe::env
