#include "env/arm7/arm7_control.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tests/env/arm7/solo_arm7.h"

namespace troupe::env {
namespace {

/// An arm at home, without a simulation behind it.
struct Home {
  explicit Home(Arm7Task task = Arm7Task::lift)
      : arm(make_arm7_model(task, 0.005).value()), data(make_mujoco_data(*arm.model).value()) {
    for (std::size_t j = 0; j < kArm7Joints; ++j) data->qpos[j] = kArm7Home[j];
    data->qpos[7] = data->qpos[8] = kFingerOpen;
    mj_kinematics(arm.model.get(), data.get());
  }
  Arm7Vec tcp() const {
    const mjtNum* p = data->site_xpos + 3 * arm.tcp_site;
    return {p[0], p[1], p[2]};
  }
  Arm7Model arm;
  MujocoData data;
};

TEST(Arm7ControlTest, TheHomePoseHoldsTheToolWhereTheTableSays) {
  const Home home;
  EXPECT_NEAR(home.tcp()[0], 0.615, 1e-3);
  EXPECT_NEAR(home.tcp()[1], 0, 1e-9);
  EXPECT_NEAR(home.tcp()[2], 0.170, 1e-3);
}

TEST(Arm7ControlTest, TheModelHasTheStatedSizes) {
  const Home home;
  EXPECT_EQ(home.arm.model->nq, 7 + 2 + 7);
  EXPECT_EQ(home.arm.model->nu, 8);
  EXPECT_EQ(home.arm.model->opt.timestep, 0.005);
  EXPECT_EQ(home.arm.model->opt.iterations, 20);
  EXPECT_EQ(home.arm.model->opt.cone, mjCONE_ELLIPTIC);
}

TEST(Arm7ControlTest, DrivesHaveTheStatedGainsAndForces) {
  const Home home;
  const mjModel& m = *home.arm.model;
  for (int i = 0; i < 8; ++i) {
    const double gain = i < 4 ? 1000 : i < 7 ? 300 : 500, force = i < 4 ? 100 : i < 7 ? 50 : 30;
    EXPECT_EQ(m.actuator_gainprm[mjNGAIN * i], gain) << i;
    EXPECT_TRUE(m.actuator_forcelimited[i]);
    EXPECT_EQ(m.actuator_forcerange[2 * i + 1], force) << i;
    EXPECT_TRUE(m.actuator_ctrllimited[i]);
  }
}

TEST(Arm7ControlTest, OnlyPairsThatMatterCollide) {
  const Home home;
  const mjModel& m = *home.arm.model;
  const auto collide = [&](const char* a, const char* b) {
    const int i = mj_name2id(&m, mjOBJ_GEOM, a), k = mj_name2id(&m, mjOBJ_GEOM, b);
    return (m.geom_contype[i] & m.geom_conaffinity[k]) != 0 || (m.geom_contype[k] & m.geom_conaffinity[i]) != 0;
  };
  EXPECT_TRUE(collide("lfinger_pad", "cube"));
  EXPECT_TRUE(collide("link5", "cube"));
  EXPECT_TRUE(collide("hand", "table"));
  EXPECT_TRUE(collide("cube", "table"));
  EXPECT_TRUE(collide("cube", "floor"));
  EXPECT_FALSE(collide("link3", "hand"));
  EXPECT_FALSE(collide("hand", "floor"));
}

TEST(Arm7ControlTest, AJointActionIsATenthOfARadianFromWhereTheJointIs) {
  Home home;
  const std::vector<float> action = {1, -1, 0.5F, 0, 0, 0, 0.25F, -1};
  EXPECT_FALSE(apply_arm7_action(home.arm, *home.data, Arm7Control::joint, action));
  EXPECT_NEAR(home.data->ctrl[0], kArm7Home[0] + 0.1, 1e-12);
  EXPECT_NEAR(home.data->ctrl[1], kArm7Home[1] - 0.1, 1e-12);
  EXPECT_NEAR(home.data->ctrl[2], kArm7Home[2] + 0.05, 1e-12);
  EXPECT_NEAR(home.data->ctrl[6], kArm7Home[6] + 0.025, 1e-12);
  EXPECT_EQ(home.data->ctrl[7], kFingerOpen);
}

TEST(Arm7ControlTest, TargetsStayWithinTheJointsLimits) {
  Home home;
  home.data->qpos[3] = -0.1;  // upper limit -0.0698
  apply_arm7_action(home.arm, *home.data, Arm7Control::joint, std::vector<float>{0, 0, 0, 1, 0, 0, 0, 0});
  EXPECT_EQ(home.data->ctrl[3], kArm7JointHigh[3]);
}

TEST(Arm7ControlTest, AGripperNumberAboveItsThresholdCloses) {
  Home home;
  const auto closes = [&](Arm7Control control, float value) {
    std::vector<float> action(control == Arm7Control::ee ? 7 : 8, 0.0F);
    action.back() = value;
    const bool closed = apply_arm7_action(home.arm, *home.data, control, action);
    EXPECT_EQ(home.data->ctrl[7], closed ? kFingerClosed : kFingerOpen);
    return closed;
  };
  EXPECT_TRUE(closes(Arm7Control::joint, 0.01F));
  EXPECT_FALSE(closes(Arm7Control::joint, 0.0F));
  EXPECT_TRUE(closes(Arm7Control::ee, 1.0F));
  EXPECT_FALSE(closes(Arm7Control::ee, -1.0F));
  EXPECT_TRUE(closes(Arm7Control::joint_abs, 0.51F));
  EXPECT_FALSE(closes(Arm7Control::joint_abs, 0.5F));
}

TEST(Arm7ControlTest, AbsoluteTargetsAreApproachedAtMostFifteenHundredthsAStep) {
  Home home;
  std::vector<float> action(8);
  for (std::size_t j = 0; j < kArm7Joints; ++j) action[j] = static_cast<float>(kArm7Home[j]);
  action[0] += 1;
  action[2] -= 0.05F;
  apply_arm7_action(home.arm, *home.data, Arm7Control::joint_abs, action);
  EXPECT_NEAR(home.data->ctrl[0], 0.15, 1e-9);
  EXPECT_NEAR(home.data->ctrl[2], -0.05, 1e-6);
  EXPECT_NEAR(home.data->ctrl[1], kArm7Home[1], 1e-6);
}

/// The tool's way after the joints have moved to the targets.
Arm7Vec way_after(Home& home, const std::vector<float>& action) {
  const Arm7Vec before = home.tcp();
  apply_arm7_action(home.arm, *home.data, Arm7Control::ee, action);
  for (std::size_t j = 0; j < kArm7Joints; ++j) home.data->qpos[j] = home.data->ctrl[j];
  mj_kinematics(home.arm.model.get(), home.data.get());
  const Arm7Vec after = home.tcp();
  return {after[0] - before[0], after[1] - before[1], after[2] - before[2]};
}

TEST(Arm7ControlTest, AnEndEffectorActionMovesTheToolAlongTheBasesAxes) {
  for (std::size_t axis = 0; axis < 3; ++axis) {
    Home home;
    std::vector<float> action(7, 0.0F);
    action[axis] = 1;
    const Arm7Vec way = way_after(home, action);
    // damping costs a little of the 3 cm
    EXPECT_NEAR(way[axis], 0.03, 0.004) << axis;
    EXPECT_NEAR(way[(axis + 1) % 3], 0, 0.004);
    EXPECT_NEAR(way[(axis + 2) % 3], 0, 0.004);
  }
}

TEST(Arm7ControlTest, AnEndEffectorActionTurnsTheToolAboutTheBasesAxes) {
  for (std::size_t axis = 0; axis < 3; ++axis) {
    Home home;
    std::vector<mjtNum> before(home.data->site_xmat, home.data->site_xmat + 9);
    std::vector<float> action(7, 0.0F);
    action[3 + axis] = 0.3F;  // small enough that no joint meets its limit of a step
    way_after(home, action);
    mjtNum between[9], quat[4], turn[3];
    mju_mulMatMatT(between, home.data->site_xmat, before.data(), 3, 3, 3);
    mju_mat2Quat(quat, between);
    mju_quat2Vel(turn, quat, 1);
    EXPECT_NEAR(turn[axis], 0.045, 0.005) << axis;
    EXPECT_NEAR(turn[(axis + 1) % 3], 0, 0.005);
    EXPECT_NEAR(turn[(axis + 2) % 3], 0, 0.005);
  }
}

TEST(Arm7ControlTest, NoEndEffectorStepTurnsAJointByMoreThanItsLimit) {
  Home home;
  const auto step = arm7_inverse_step(home.arm, *home.data, {5, 5, 5}, {5, 5, 5});
  for (const double dq : step) EXPECT_LE(std::abs(dq), kArm7LargestStep);
}

TEST(Arm7ControlTest, AnArmThatIsToldNothingHoldsItsPlaceAgainstGravity) {
  SoloArm7 env("reach", 1);
  const auto before = env.positions();
  for (int i = 0; i < 50; ++i) env.step(env.still()).value();
  const auto after = env.positions();
  for (std::size_t j = 0; j < kArm7Joints; ++j) EXPECT_NEAR(after[j], before[j], 2e-3) << "joint " << j + 1;
}

TEST(Arm7ControlTest, TheFingersMoveTogether) {
  SoloArm7 env("reach", 1);
  auto action = env.still();
  action.back() = 1;
  for (int i = 0; i < 20; ++i) env.step(action).value();
  EXPECT_NEAR(env.positions()[7], env.positions()[8], 1e-3);
  EXPECT_LT(env.positions()[7], 2e-3);
}

}  // namespace
}  // namespace troupe::env
