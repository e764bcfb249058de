#include "env/arm7/arm7_env.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "tests/env/arm7/solo_arm7.h"

namespace troupe::env {
namespace {

constexpr std::size_t kTcp = 16, kQuat = 19, kGrip = 23, kRemaining = 24;

TEST(Arm7EnvTest, TheStateBeginsWithProprioception) {
  SoloArm7 env("lift", 5);
  const auto state = env.floats(0);
  const auto q = env.positions();
  for (std::size_t j = 0; j < 9; ++j) EXPECT_EQ(state[j < 7 ? j : j + 7], static_cast<float>(q[j])) << j;
  for (std::size_t j = 7; j < 14; ++j) EXPECT_EQ(state[j], 0);
  const auto task = env.arm().task_state();
  for (std::size_t k = 0; k < 3; ++k) EXPECT_EQ(state[kTcp + k], static_cast<float>(task.tcp[k]));
  EXPECT_GE(state[kQuat], 0);
  EXPECT_EQ(state[kGrip], -1);
  EXPECT_EQ(state[kRemaining], 1);
}

TEST(Arm7EnvTest, TheStateSaysWhatTheGripperWasToldAndHowMuchOfTheEpisodeIsLeft) {
  SoloArm7 env("reach", 5);
  auto action = env.still();
  action.back() = 1;
  env.step(action).value();
  EXPECT_EQ(env.floats(0)[kGrip], 1);
  EXPECT_FLOAT_EQ(env.floats(0)[kRemaining], 0.98F);
}

TEST(Arm7EnvTest, TheStateEndsWithTheTasksPart) {
  SoloArm7 env("pick_place", 6);
  env.step(env.still()).value();
  std::vector<float> part(17);
  write_arm7_task_part(Arm7Task::pick_place, env.arm().task_state(), part);
  const auto state = env.floats(0);
  EXPECT_EQ(std::vector<float>(state.begin() + 25, state.end()), part);
}

TEST(Arm7EnvTest, PositionsAreThoseAfterTheStep) {
  // MuJoCo's own are those before its last integration
  SoloArm7 env("reach", 7);
  env.step(random_actions(env.spec().action, 1, 3)).value();
  const auto told = env.arm().task_state().tcp;
  env.arm().set_positions(env.positions()).value();
  const auto fresh = env.arm().task_state().tcp;
  for (std::size_t k = 0; k < 3; ++k) EXPECT_NEAR(told[k], fresh[k], 1e-12);
}

TEST(Arm7EnvTest, RewardAndSuccessAreThoseOfTheTaskState) {
  SoloArm7 env("push", 8);
  for (std::uint64_t s = 0; s < 20; ++s) {
    env.step(random_actions(env.spec().action, 1, 9, s)).value();
    EXPECT_EQ(env.reward(), arm7_reward(Arm7Task::push, env.arm().task_state()));
    EXPECT_EQ(env.success(), arm7_success(Arm7Task::push, env.arm().task_state()));
  }
}

/// The same episode with its cube, or its tool, already where the task wants it.
void solve_push(SoloArm7& env) {
  auto q = env.positions();
  const auto& goal = env.arm().episode().goal;
  q[kCubePos] = goal[0];
  q[kCubePos + 1] = goal[1];
  env.arm().set_positions(q).value();
}

TEST(Arm7EnvTest, SuccessDoesNotEndAnEpisodeByItself) {
  SoloArm7 env("push", 1);
  solve_push(env);
  env.step(env.still()).value();
  EXPECT_TRUE(env.success());
  EXPECT_FALSE(env.terminated());
}

TEST(Arm7EnvTest, SuccessEndsAnEpisodeThatIsToldSo) {
  SoloArm7 env("push", 1, {.options = {{"terminate_on_success", "true"}}});
  env.step(env.still()).value();
  EXPECT_FALSE(env.terminated());
  solve_push(env);
  env.step(env.still()).value();
  EXPECT_TRUE(env.terminated());
  EXPECT_GT(env.reward(), 1.0);
}

TEST(Arm7EnvTest, ASparseRewardIsPaidOnceWhenTheTaskIsSolved) {
  SoloArm7 env("push", 1, {.options = {{"sparse", "true"}}});
  env.step(env.still()).value();
  EXPECT_EQ(env.reward(), 0);
  solve_push(env);
  env.step(env.still()).value();
  EXPECT_EQ(env.reward(), 1);
  EXPECT_TRUE(env.terminated());
  env.step(env.still()).value();
  EXPECT_EQ(env.reward(), 0);
}

/// The cube `below` the tool's point in metres, turned as the hand is (upside down at home, so about the vertical
/// alone); both fingers `opening` from the middle.
std::vector<double> cube_at_tool(SoloArm7& env, double below, double opening) {
  const auto tcp = env.arm().task_state().tcp;
  const auto state = env.floats(0);
  auto q = env.positions();
  for (std::size_t k = 0; k < 3; ++k) q[kCubePos + k] = tcp[k];
  q[kCubePos + 2] -= below;
  for (std::size_t k = 0; k < 4; ++k) q[kCubePos + 3 + k] = static_cast<double>(state[kQuat + k]);
  q[7] = q[8] = opening;
  return q;
}

TEST(Arm7EnvTest, ACubeBetweenClosedFingersIsGrasped) {
  SoloArm7 env("lift", 2);
  env.arm().set_positions(cube_at_tool(env, 0, 0.0205)).value();
  EXPECT_FALSE(env.arm().task_state().is_grasped);
  auto action = env.still();
  action.back() = 1;
  for (int i = 0; i < 4; ++i) env.step(action).value();
  EXPECT_TRUE(env.arm().task_state().is_grasped);
  EXPECT_TRUE(env.success());  // 15 cm above the table
}

TEST(Arm7EnvTest, ACubeUnderClosedFingersIsNotGrasped) {
  SoloArm7 env("lift", 2);
  // Its top 3 mm inside the fingertips, which end 9 mm below the tool's point: both pads push it away.
  env.arm().set_positions(cube_at_tool(env, kCubeHalf + 0.006, 0)).value();
  const auto& d = env.arm().data();
  for (const int pad : {env.arm().arm().left_pad, env.arm().arm().right_pad}) {
    double newtons = 0;
    for (int i = 0; i < d.ncon; ++i) {
      mjtNum force[6];
      mj_contactForce(env.arm().arm().model.get(), &d, i, force);
      if (d.contact[i].geom[0] == pad || d.contact[i].geom[1] == pad) newtons += force[0];
    }
    EXPECT_GT(newtons, kArm7GraspForce);
  }
  EXPECT_FALSE(env.arm().task_state().is_grasped);
}

TEST(Arm7EnvTest, ASimulationThatBreaksDownEndsTheEpisodeWithoutReward) {
  SoloArm7 env("lift", 3);
  auto q = env.positions();
  q[kCubePos] = std::numeric_limits<double>::quiet_NaN();
  env.arm().set_positions(q).value();
  env.step(env.still()).value();
  EXPECT_TRUE(env.terminated());
  EXPECT_FALSE(env.success());
  EXPECT_EQ(env.reward(), 0);
  env.reset(3).value();
  env.step(env.still()).value();
  EXPECT_FALSE(env.terminated());
}

TEST(Arm7EnvTest, AnotherEpisodeHasAnotherHash) {
  SoloArm7 env("lift", 3);
  const auto first = env.env().state_hash();
  env.reset(4).value();
  EXPECT_NE(env.env().state_hash(), first);
  env.reset(3).value();
  EXPECT_EQ(env.env().state_hash(), first);
}

TEST(Arm7EnvTest, AResetForgetsWhatWasSimulatedBefore) {
  SoloArm7 used("lift"), fresh("lift");
  used.reset(1).value();
  for (std::uint64_t s = 0; s < 30; ++s) used.step(random_actions(used.spec().action, 1, 5, s)).value();
  for (auto* env : {&used, &fresh}) {
    env->reset(9).value();
    for (std::uint64_t s = 0; s < 30; ++s) env->step(random_actions(env->spec().action, 1, 6, s)).value();
  }
  EXPECT_EQ(used.bits(), fresh.bits());
}

TEST(Arm7EnvTest, RandomActionsNeverBreakTheSimulation) {
  for (const char* task : {"reach", "push", "lift", "pick_place"}) {
    SoloArm7 env(task, 1);
    for (std::uint64_t s = 0; s < 400; ++s) {
      env.step(random_actions(env.spec().action, 1, 7, s)).value();
      ASSERT_FALSE(env.terminated()) << task << " step " << s;
    }
  }
}

class Arm7EnvProfileTest : public ::testing::TestWithParam<const char*> {};

TEST_P(Arm7EnvProfileTest, ObservingWritesWhatTheStepWrote) {
  SoloArm7 env("pick_place", 2, {.profile = GetParam()});
  EXPECT_EQ(env.observed(), env.fields());
  for (std::uint64_t s = 0; s < 3; ++s) env.step(random_actions(env.spec().action, 1, 8, s)).value();
  EXPECT_EQ(env.observed(), env.fields());
}

TEST_P(Arm7EnvProfileTest, TheSameActionsGiveTheSameBits) {
  SoloArm7 a("pick_place", 2, {.profile = GetParam()}), b("pick_place", 2, {.profile = GetParam()});
  for (auto* env : {&a, &b}) {
    for (std::uint64_t s = 0; s < 10; ++s) env->step(random_actions(env->spec().action, 1, 8, s)).value();
  }
  EXPECT_EQ(a.bits(), b.bits());
}

INSTANTIATE_TEST_SUITE_P(Profiles, Arm7EnvProfileTest,
                         ::testing::Values("state", "pixel", "views", "frames", "libero", "droid"),
                         [](const auto& instance) { return std::string(instance.param); });

TEST(Arm7EnvTest, TheViewsProfileHoldsTheStateInTwoParts) {
  SoloArm7 state("reach", 2), views("reach", 2, {.profile = "views"});
  const auto action = random_actions(state.spec().action, 1, 8, 0);
  for (auto* env : {&state, &views}) env->step(action).value();
  std::vector<float> parts = views.floats(views.field_of("proprio"));
  const auto task = views.floats(views.field_of("task"));
  parts.insert(parts.end(), task.begin(), task.end());
  EXPECT_EQ(parts, state.floats(state.field_of("state")));
}

TEST(Arm7EnvTest, TheGripperPositionIsOneWhenClosed) {
  SoloArm7 env("lift", 2, {.profile = "droid"});
  const std::size_t field = env.field_of("gripper_position");
  EXPECT_NEAR(env.floats(field)[0], 0, 1e-6);
  std::vector<float> action = env.floats(env.field_of("joint_position"));
  action.push_back(1);
  for (int i = 0; i < 20; ++i) env.step(action).value();
  EXPECT_NEAR(env.floats(field)[0], 1, 0.05);
}

TEST(Arm7EnvTest, TheToolOfLiberoIsARotationVectorDownwards) {
  SoloArm7 env("lift", 2, {.profile = "libero"});
  const auto tool = env.floats(env.field_of("proprio"));
  const auto tcp = env.arm().task_state().tcp;
  for (std::size_t k = 0; k < 3; ++k) EXPECT_EQ(tool[k], static_cast<float>(tcp[k]));
  // the hand points down: half a turn about a level axis
  EXPECT_NEAR(std::hypot(tool[3], tool[4], tool[5]), 3.14159F, 0.1F);
  EXPECT_NEAR(tool[5], 0, 0.1F);
}

TEST(Arm7EnvTest, AnInstructionIsToldAtEveryObservationWhereItIsAskedFor) {
  SoloArm7 env("lift", 12, {.options = {{"instruction", "true"}}}), plain("lift", 12);
  const std::size_t field = env.field_of("instruction");
  ASSERT_EQ(field, 0U) << "in the order of names";
  const auto told = [&] {
    std::string text;
    for (const float byte : env.floats(field)) text += static_cast<char>(byte);
    return text;
  };
  std::string wanted = arm7_instruction(Arm7Task::lift, make_arm7_episode(Arm7Task::lift, 12));
  wanted.resize(64);
  EXPECT_EQ(told(), wanted);
  env.step(env.still()).value();
  plain.step(plain.still()).value();
  EXPECT_EQ(told(), wanted);
  EXPECT_EQ(env.floats(1), plain.floats(0));
  EXPECT_EQ(env.arm().state_hash(), plain.arm().state_hash());
}

TEST(Arm7EnvTest, TheInstructionIsThatOfTheEpisode) {
  SoloArm7 env("lift", 12);
  EXPECT_EQ(env.arm().instruction(), arm7_instruction(Arm7Task::lift, make_arm7_episode(Arm7Task::lift, 12)));
}

TEST(Arm7EnvTest, AnIdThatArm7LacksIsNotFound) {
  EXPECT_EQ(make_arm7_factory("arm7/juggle-v1", {}).error().code(), Errc::not_found);
}

}  // namespace
}  // namespace troupe::env
