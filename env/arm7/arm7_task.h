#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace troupe {

using Arm7Vec = std::array<double, 3>;

/// The tabletop tasks of sim.md 4.2.
enum class Arm7Task : std::uint8_t { reach, push, lift, pick_place };

inline constexpr std::size_t kArm7Joints = 7;
inline constexpr double kCubeHalf = 0.02;        ///< metres
inline constexpr double kArm7GraspForce = 0.5;   ///< newtons of each pad on the cube, towards the other pad
inline constexpr double kArm7GraspCosine = 0.5;  ///< the force lies within 60 degrees of that direction
inline constexpr double kArm7StaticSpeed = 0.2;  ///< rad/s: slower is standing still

/// What a task's reward and success depend on, after a control step. SI units; positions in the world.
struct Arm7TaskState {
  Arm7Vec tcp{};                                  ///< between the fingertips
  Arm7Vec object{}, goal{};                       ///< the cube's centre; reach has none
  std::array<double, 4> object_quat{1, 0, 0, 0};  ///< w, x, y, z
  double max_joint_speed = 0;                     ///< of the seven joints, absolute
  bool is_grasped = false;  ///< each pad presses the cube towards the other one: kArm7GraspForce, kArm7GraspCosine

  double height() const { return object[2] - kCubeHalf; }  ///< of the cube above where it rests
};

std::string_view to_string(Arm7Task task) noexcept;  ///< "reach"
bool has_cube(Arm7Task task) noexcept;
bool has_goal(Arm7Task task) noexcept;
std::int64_t arm7_max_steps(Arm7Task task) noexcept;

bool arm7_success(Arm7Task task, const Arm7TaskState& state) noexcept;
/// The dense reward of one step.
double arm7_reward(Arm7Task task, const Arm7TaskState& state) noexcept;
/// The distance in metres that the task is about: tcp to goal, cube to goal (push: in the plane), or tcp to cube (lift).
double arm7_distance(Arm7Task task, const Arm7TaskState& state) noexcept;

/// Length of the task's part of `state`, and the part itself:
/// reach goal, goal-tcp; push cube position, quat, goal, cube-tcp, goal-cube; lift cube position, quat, cube-tcp, height,
/// grasped; pick_place cube position, quat, goal, cube-tcp, goal-cube, grasped.
std::int64_t arm7_task_part_size(Arm7Task task) noexcept;
void write_arm7_task_part(Arm7Task task, const Arm7TaskState& state, std::span<float> out) noexcept;

/// How an episode begins; everything that is drawn by chance in it.
struct Arm7Episode {
  std::array<double, kArm7Joints> joints{};  ///< rad
  Arm7Vec cube{}, goal{};
  double cube_yaw = 0;
  std::uint32_t color = 0;   ///< of the cube: index into arm7_colors()
  std::uint32_t phrase = 0;  ///< of the instruction
};

/// The episode that `seed` names (env/episode_seed.h). The same in every process.
Arm7Episode make_arm7_episode(Arm7Task task, std::uint64_t seed);

struct Arm7Color {
  std::string_view name;
  std::array<float, 3> rgb;
};
std::span<const Arm7Color> arm7_colors();

inline constexpr std::uint32_t kArm7Phrases = 8;  ///< paraphrases of each task
/// What a language-conditioned policy is told, such as "lift the red cube off the table".
std::string arm7_instruction(Arm7Task task, const Arm7Episode& episode);

}  // namespace troupe
