#include "data/init/column_parts.h"

#include <gtest/gtest.h>

namespace troupe::data {
namespace {

std::vector<std::string> parts_of(const std::vector<std::string>& names) {
  std::vector<std::string> out;
  for (const ColumnPart& p : split_by_names(names))
    out.push_back(p.name + " " + std::to_string(p.start) + ":" + std::to_string(p.end));
  return out;
}
using Parts = std::vector<std::string>;

TEST(ColumnPartsTest, AnArmWithAGripperIsTwoParts) {
  EXPECT_EQ(parts_of({"shoulder_pan.pos", "shoulder_lift.pos", "elbow_flex.pos", "wrist_roll.pos", "gripper.pos"}),
            (Parts{"arm 0:4", "gripper 4:5"}));
}

TEST(ColumnPartsTest, SidesAreParts) {
  EXPECT_EQ(parts_of({"left_waist", "left_elbow", "left_gripper", "right_waist", "right_elbow", "right_gripper"}),
            (Parts{"left_arm 0:2", "left_gripper 2:3", "right_arm 3:5", "right_gripper 5:6"}));
}

TEST(ColumnPartsTest, CamelCaseNamesAreWords) {
  EXPECT_EQ(parts_of({"kLeftShoulderPitch", "kLeftWristYaw", "kRightElbow", "kLeftHandPinky", "kRightHandIndex"}),
            (Parts{"left_arm 0:2", "right_arm 2:3", "left_hand 3:4", "right_hand 4:5"}));
}

TEST(ColumnPartsTest, APoseWithAGripperIsTwoParts) {
  EXPECT_EQ(parts_of({"x", "y", "z", "roll", "pitch", "yaw", "gripper"}), (Parts{"pose 0:6", "gripper 6:7"}));
}

TEST(ColumnPartsTest, APartThatComesTwiceIsNumbered) {
  EXPECT_EQ(parts_of({"elbow", "gripper", "elbow", "gripper"}),
            (Parts{"arm 0:1", "gripper 1:2", "arm_2 2:3", "gripper_2 3:4"}));
}

TEST(ColumnPartsTest, NamesThatSayNoPartSplitNothing) {
  EXPECT_TRUE(split_by_names({"motor_0", "motor_1", "motor_2"}).empty());
  EXPECT_TRUE(split_by_names({}).empty());
}

TEST(ColumnPartsTest, WhatOpensAndClosesGrasps) {
  for (const char* key : {"gripper", "left_hand", "gripper_position", "robotFinger"}) EXPECT_TRUE(grasps(key)) << key;
  for (const char* key : {"left_arm", "joints", "pose"}) EXPECT_FALSE(grasps(key)) << key;
}

}  // namespace
}  // namespace troupe::data
