#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/enum_names.h"

namespace troupe::env {

using Arm7Vec = std::array<double, 3>;

/// The tabletop tasks (docs/env.md#what-there-is).
enum class Arm7Task : std::uint8_t { reach, push, lift, pick_place };
constexpr auto enum_names(Arm7Task) { return std::array{"reach", "push", "lift", "pick_place"}; }

inline constexpr std::size_t kArm7Joints = 7;
/// Metres.
inline constexpr double kCubeHalf = 0.02;
/// Newtons of each pad on the cube, towards the other pad.
inline constexpr double kArm7GraspForce = 0.5;
/// The force lies within 60 degrees of that direction.
inline constexpr double kArm7GraspCosine = 0.5;
/// Rad/s: slower is standing still.
inline constexpr double kArm7StaticSpeed = 0.2;

/// What a task's reward and success depend on, after a control step. SI units; positions in the world.
struct Arm7TaskState {
  /// Between the fingertips.
  Arm7Vec tcp{};
  /// The cube's centre; reach has none.
  Arm7Vec object{}, goal{};
  /// W, x, y, z.
  std::array<double, 4> object_quat{1, 0, 0, 0};
  /// Of the seven joints, absolute.
  double max_joint_speed = 0;
  /// Each pad presses the cube towards the other one: kArm7GraspForce, kArm7GraspCosine.
  bool is_grasped = false;

  /// Of the cube above where it rests.
  double height() const { return object[2] - kCubeHalf; }
};

/// Every task but reach has a cube; every task but lift has a goal.
bool has_cube(Arm7Task task) noexcept;
bool has_goal(Arm7Task task) noexcept;
/// Control steps: reach 50, push and lift 80, pick_place 100.
std::int64_t arm7_max_steps(Arm7Task task) noexcept;

/// reach: tcp within 0.025 m of the goal, standing still; push: cube within 0.03 m of it in the plane; lift: 0.15 m
/// up and grasped; pick_place: cube within 0.025 m of the goal, standing still.
bool arm7_success(Arm7Task task, const Arm7TaskState& state) noexcept;
/// The dense reward of one step.
/// With c(d) = 1 - tanh(5 d), d in metres, g grasped and s success (0 or 1):
///     reach       c(tcp-goal) + s
///     push        0.5 c(tcp-push point) + c(cube-goal) + s; the push point lies 0.045 m behind the cube
///     lift        c(cube-tcp) + g (1 + clamp(height / 0.2, 0, 1)) + 2 s
///     pick_place  1 if s, else (c(cube-tcp) + g + g c(cube-goal) + c(joint speed) placed) / 5
double arm7_reward(Arm7Task task, const Arm7TaskState& state) noexcept;
/// The distance in metres that the task is about: tcp to goal, cube to goal (push: in the plane), or tcp to cube
/// (lift).
double arm7_distance(Arm7Task task, const Arm7TaskState& state) noexcept;

/// Length of the task's part of `state`, and the part itself:
/// reach goal, goal-tcp; push cube position, quat, goal, cube-tcp, goal-cube; lift cube position, quat, cube-tcp,
/// height, grasped; pick_place cube position, quat, goal, cube-tcp, goal-cube, grasped.
/// Numbers: reach 6, push 16, lift 12, pick_place 17. `out` must have exactly that many, else the process aborts.
std::int64_t arm7_task_part_size(Arm7Task task) noexcept;
void write_arm7_task_part(Arm7Task task, const Arm7TaskState& state, std::span<float> out) noexcept;

/// How an episode begins; everything that is drawn by chance in it.
struct Arm7Episode {
  /// Rad.
  std::array<double, kArm7Joints> joints{};
  Arm7Vec cube{}, goal{};
  double cube_yaw = 0;
  /// Of the cube: index into arm7_colors().
  std::uint32_t color = 0;
  /// Of the instruction.
  std::uint32_t phrase = 0;
};

/// The episode that `seed` names (env/episode_seed.h). The same in every process.
Arm7Episode make_arm7_episode(Arm7Task task, std::uint64_t seed);

/// A colour's word in instructions, and its components, 0 to 1.
struct Arm7Color {
  std::string_view name;
  std::array<float, 3> rgb;
};
std::span<const Arm7Color> arm7_colors();

/// Paraphrases of each task.
inline constexpr std::uint32_t kArm7Phrases = 8;
/// What a language-conditioned policy is told, such as "lift the red cube off the table".
std::string arm7_instruction(Arm7Task task, const Arm7Episode& episode);

}  // namespace troupe::env
