#pragma once

#include <mujoco/mujoco.h>

#include <array>
#include <cstdint>
#include <span>

#include "env/arm7/arm7_model.h"
#include "env/env_spec.h"

namespace troupe::env {

/// What an action means. The last number drives the gripper.
enum class Arm7Control : std::uint8_t {
  /// 8 in [-1,1]: 0.10 rad of each joint from where it is; above 0 closes.
  joint,
  /// 7 in [-1,1]: dx dy dz by 0.03 m, rotation vector by 0.15 rad, both along the base's axes; above 0 closes.
  ee,
  /// 8: joint angles in rad, approached by at most 0.15 rad a step; above 0.5 closes.
  joint_abs,
};

/// Rad per action of 1.
inline constexpr double kArm7JointStep = 0.10;
/// Metres per action of 1.
inline constexpr double kArm7MoveStep = 0.03;
/// Rad.
inline constexpr double kArm7TurnStep = 0.15;
/// Rad of one joint: ee, joint_abs.
inline constexpr double kArm7LargestStep = 0.15;

/// Size 8 (joint, joint_abs) or 7 (ee); bounds -1 to 1, for joint_abs the joints' limits in rad and 0 to 1.
ActionSpace arm7_action_space(Arm7Control control);

/// Joint changes that move the tool by `move` (m) and turn it by `turn` (rotation vector), both in the world, by one
/// step of damped least squares:  dq = J' (J J' + 0.0025 I)^-1 e,  each within kArm7LargestStep.
/// Needs mj_kinematics of the present joints; calls mj_comPos. Does not allocate.
/// Source: damped least squares, Nakamura and Hanafusa 1986.
std::array<double, kArm7Joints> arm7_inverse_step(const Arm7Model& arm, mjData& data, const Arm7Vec& move,
                                                  const Arm7Vec& turn);

/// Writes the controls that an action asks for at the present joints. Returns whether the gripper is to close.
bool apply_arm7_action(const Arm7Model& arm, mjData& data, Arm7Control control, std::span<const float> action);

}  // namespace troupe::env
