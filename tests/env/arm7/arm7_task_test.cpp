#include "env/arm7/arm7_task.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace troupe::env {
namespace {

double closeness(double d) { return 1 - std::tanh(5 * d); }

TEST(Arm7TaskTest, ReachPaysForNearnessAndOnceMoreForSuccess) {
  Arm7TaskState s;
  s.tcp = {0.5, 0, 0.2};
  s.goal = {0.5, 0.1, 0.2};
  EXPECT_FALSE(arm7_success(Arm7Task::reach, s));
  EXPECT_DOUBLE_EQ(arm7_reward(Arm7Task::reach, s), closeness(0.1));
  s.goal = {0.5, 0.02, 0.2};
  EXPECT_TRUE(arm7_success(Arm7Task::reach, s));
  EXPECT_DOUBLE_EQ(arm7_reward(Arm7Task::reach, s), closeness(0.02) + 1);
}

TEST(Arm7TaskTest, ReachingWhileMovingIsNoSuccess) {
  Arm7TaskState s;
  s.max_joint_speed = 0.2;
  EXPECT_FALSE(arm7_success(Arm7Task::reach, s));
  s.max_joint_speed = 0.19;
  EXPECT_TRUE(arm7_success(Arm7Task::reach, s));
}

TEST(Arm7TaskTest, PushPaysForStandingBehindTheCubeAndForItsDistanceInThePlane) {
  Arm7TaskState s;
  s.object = {0.5, 0, 0.02};
  s.goal = {0.7, 0, 0};
  s.tcp = {0.5 - 0.045, 0.03, 0.02};  // 3 cm aside of where to push
  EXPECT_DOUBLE_EQ(arm7_reward(Arm7Task::push, s), 0.5 * closeness(0.03) + closeness(0.2));
  s.object = {0.68, 0, 0.5};  // height does not matter
  EXPECT_TRUE(arm7_success(Arm7Task::push, s));
  s.object = {0.67 - 1e-9, 0, 0.02};
  EXPECT_FALSE(arm7_success(Arm7Task::push, s));
}

TEST(Arm7TaskTest, LiftPaysForNearnessGraspHeightAndSuccess) {
  Arm7TaskState s;
  s.tcp = {0.5, 0, 0.06};
  s.object = {0.5, 0, 0.12};
  EXPECT_DOUBLE_EQ(arm7_reward(Arm7Task::lift, s), closeness(0.06));
  s.is_grasped = true;
  EXPECT_DOUBLE_EQ(arm7_reward(Arm7Task::lift, s), closeness(0.06) + 1 + 0.5);
  s.tcp = s.object = {0.5, 0, 0.32};
  EXPECT_DOUBLE_EQ(arm7_reward(Arm7Task::lift, s), 1 + (1 + 1) + 2.0);
}

TEST(Arm7TaskTest, ALiftedCubeMustBeHeld) {
  Arm7TaskState s;
  s.object = {0.5, 0, 0.1701};
  EXPECT_FALSE(arm7_success(Arm7Task::lift, s));
  s.is_grasped = true;
  EXPECT_TRUE(arm7_success(Arm7Task::lift, s));
  s.object[2] = 0.1699;
  EXPECT_FALSE(arm7_success(Arm7Task::lift, s));
}

TEST(Arm7TaskTest, PickPlacePaysAFifthOfItsStagesAndOneForSuccess) {
  Arm7TaskState s;
  s.tcp = {0.5, 0, 0.12};
  s.object = {0.5, 0, 0.1};
  s.goal = {0.5, 0.1, 0.1};
  s.is_grasped = true;
  s.max_joint_speed = 0.3;
  EXPECT_DOUBLE_EQ(arm7_reward(Arm7Task::pick_place, s), (closeness(0.02) + 1 + closeness(0.1)) / 5);
  s.goal = {0.5, 0.02, 0.1};
  EXPECT_DOUBLE_EQ(arm7_reward(Arm7Task::pick_place, s), (closeness(0.02) + 1 + closeness(0.02) + closeness(0.3)) / 5);
  s.max_joint_speed = 0.1;
  EXPECT_TRUE(arm7_success(Arm7Task::pick_place, s));
  EXPECT_DOUBLE_EQ(arm7_reward(Arm7Task::pick_place, s), 1);
}

std::vector<float> part(Arm7Task task, const Arm7TaskState& s) {
  std::vector<float> out(static_cast<std::size_t>(arm7_task_part_size(task)), -7);
  write_arm7_task_part(task, s, out);
  return out;
}

TEST(Arm7TaskTest, TheTaskPartsAreInTheirOrder) {
  Arm7TaskState s;
  s.tcp = {1, 2, 3};
  s.object = {10, 20, 30.02};
  s.goal = {100, 200, 300};
  s.object_quat = {0.5, 0.6, 0.7, 0.8};
  s.is_grasped = true;
  EXPECT_EQ(part(Arm7Task::reach, s), (std::vector<float>{100, 200, 300, 99, 198, 297}));
  EXPECT_EQ(part(Arm7Task::push, s), (std::vector<float>{10, 20, 30.02F, 0.5F, 0.6F, 0.7F, 0.8F, 100, 200, 300, 9, 18,
                                                         27.02F, 90, 180, 269.98F}));
  EXPECT_EQ(part(Arm7Task::lift, s),
            (std::vector<float>{10, 20, 30.02F, 0.5F, 0.6F, 0.7F, 0.8F, 9, 18, 27.02F, 30, 1}));
  EXPECT_EQ(part(Arm7Task::pick_place, s), (std::vector<float>{10, 20, 30.02F, 0.5F, 0.6F, 0.7F, 0.8F, 100, 200, 300, 9,
                                                               18, 27.02F, 90, 180, 269.98F, 1}));
}

}  // namespace
}  // namespace troupe::env
