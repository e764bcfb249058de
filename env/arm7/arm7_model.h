#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "env/arm7/arm7_task.h"
#include "env/mujoco/mujoco_model.h"
#include "env/render/scene.h"

namespace troupe::env {

/// Joint angles in radians, and limits of the seven joints.
inline constexpr std::array<double, kArm7Joints> kArm7Home = {0, 0.3927, 0, -1.9635, 0, 2.3562, 0.7854};
inline constexpr std::array<double, kArm7Joints> kArm7JointLow = {-2.8973, -1.7628, -2.8973, -3.0718,
                                                                  -2.8973, -0.0175, -2.8973};
inline constexpr std::array<double, kArm7Joints> kArm7JointHigh = {2.8973, 1.7628, 2.8973, -0.0698,
                                                                   2.8973, 3.7525, 2.8973};
/// Finger targets in metres: a closing finger aims beyond the middle, so that it presses.
inline constexpr double kFingerOpen = 0.04, kFingerClosed = -0.01;

/// Labels of segmentation images.
namespace arm7_label {
inline constexpr std::uint8_t floor = 1, table = 2, robot = 3, cube = 4, goal = 5;
}

/// A seven-joint arm with a parallel gripper beside a table, compiled, with what is where in it. The first seven
/// positions, velocities and controls are the arm's joints, the next two positions and velocities the fingers, control
/// 7 the fingers' target; the cube's free joint comes last. Immutable; shared by all environments of a factory.
struct Arm7Model {
  MujocoModel model;
  Arm7Task task = Arm7Task::reach;
  int tcp_site = -1;
  int hand_body = -1;
  /// Geoms.
  int left_pad = -1, right_pad = -1;
  /// -1: none.
  int cube_geom = -1;
  int goal_mocap = -1;
  /// Geoms in images.
  std::vector<int> drawn;
  /// Of `drawn`; the cube's colour is the episode's.
  std::vector<RenderGeom> looks;
  /// Index into `drawn`; -1: none.
  int drawn_cube = -1;
};

/// `timestep` in seconds. Errors: internal (the model does not compile).
Result<Arm7Model> make_arm7_model(Arm7Task task, double timestep);

/// The model's text, as MuJoCo reads it.
std::string arm7_mjcf(Arm7Task task, double timestep);

/// In qpos.
/// Index of the first finger, and of the cube's free joint (position 3, quaternion 4).
inline constexpr std::size_t kFirstFinger = kArm7Joints;
/// In qpos, with a cube.
inline constexpr std::size_t kCubePos = kArm7Joints + 2;

}  // namespace troupe::env
