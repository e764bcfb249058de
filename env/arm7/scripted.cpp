#include "env/arm7/scripted.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "base/check.h"
#include "env/arm7/arm7_profile.h"

namespace troupe::env {
namespace {

// Where what is in `state`.
constexpr std::size_t kSpeed = 7, kTcp = 16, kTask = kArm7Proprio, kCube = kTask, kCubeQuat = kTask + 3,
                      kPlaceGoal = kTask + 7;

constexpr double kHover = 0.10;                    // m above the cube's centre
constexpr double kAligned = 0.008, kLevel = 0.03;  // m, m: near enough above the cube to go down
constexpr double kSlow = 0.6;                      // rad/s of the fastest joint
constexpr double kGraspHeight = 0.006;             // m: low enough to grasp
constexpr double kCarryHeight = 0.24;              // m
constexpr int kGraspSteps = 4;
constexpr double kLargestMove = 0.05, kLargestTurn = 0.25;  // m, rad of one step
constexpr double kBraking = 0.006;                          // s: the drives overshoot a target that is only a place
constexpr double kQuarter = std::numbers::pi / 2;

Arm7Vec vector_at(std::span<const float> state, std::size_t at) { return {state[at], state[at + 1], state[at + 2]}; }

/// v, no longer than `largest`.
Arm7Vec shortened(Arm7Vec v, double largest) {
  const double length = std::sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]);
  if (length > largest) {
    for (double& x : v) x *= largest / length;
  }
  return v;
}

double yaw_of(std::span<const float> state, std::size_t at) {
  const double w = state[at], x = state[at + 1], y = state[at + 2], z = state[at + 3];
  return std::atan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z));
}

}  // namespace

Result<ScriptedArm7> ScriptedArm7::make(Arm7Task task) {
  if (task == Arm7Task::push) {
    return invalid_argument("ScriptedArm7 has no script for push; it has reach, lift and pick_place");
  }
  TROUPE_ASSIGN(auto arm, make_arm7_model(task, 0.005));
  TROUPE_ASSIGN(auto data, make_mujoco_data(*arm.model));
  return ScriptedArm7(std::move(arm), std::move(data));
}

ScriptedArm7::ScriptedArm7(Arm7Model arm, MujocoData data) : arm_(std::move(arm)), data_(std::move(data)) {}

void ScriptedArm7::reset() {
  phase_ = Phase::hover;
  waited_ = 0;
}

ScriptedArm7::Target ScriptedArm7::reach_target(std::span<const float> state) const {
  return {vector_at(state, kTask), 0, false};
}

ScriptedArm7::Target ScriptedArm7::grasp_target(std::span<const float> state) {
  const Arm7Vec tcp = vector_at(state, kTcp), cube = vector_at(state, kCube);
  const bool is_grasped = state.back() > 0;
  // the fingers close along the face normals nearest to where the hand at home has them, along y
  double yaw = yaw_of(state, kCubeQuat);
  yaw -= kQuarter * std::round(yaw / kQuarter);
  const double aside = std::hypot(tcp[0] - cube[0], tcp[1] - cube[1]);

  double speed = 0;
  for (std::size_t j = 0; j < kArm7Joints; ++j)
    speed = std::max(speed, static_cast<double>(std::abs(state[kSpeed + j])));

  const bool is_above = aside < kAligned && std::abs(tcp[2] - cube[2] - kHover) < kLevel;
  if (phase_ == Phase::hover && is_above && speed < kSlow) phase_ = Phase::descend;
  if (phase_ == Phase::descend && std::abs(tcp[2] - cube[2]) < kGraspHeight) phase_ = Phase::grasp;
  if (phase_ == Phase::grasp && ++waited_ > kGraspSteps && is_grasped) phase_ = Phase::carry;
  if (phase_ == Phase::carry && !is_grasped && aside > 2 * kCubeHalf) reset();  // dropped

  switch (phase_) {
    case Phase::hover:
      return {{cube[0], cube[1], cube[2] + kHover}, yaw, false};
    case Phase::descend:
      return {cube, yaw, false};
    case Phase::grasp:
      return {cube, yaw, true};
    case Phase::carry:
      break;
  }
  if (arm_.task == Arm7Task::pick_place) {
    // what is to be at the goal is the cube, which may sit a little aside of the tcp
    const Arm7Vec goal = vector_at(state, kPlaceGoal);
    return {{tcp[0] + goal[0] - cube[0], tcp[1] + goal[1] - cube[1], tcp[2] + goal[2] - cube[2]}, yaw, true};
  }
  return {{tcp[0], tcp[1], kCarryHeight}, yaw, true};
}

std::array<float, kArm7Joints + 1> ScriptedArm7::towards(const Target& target, std::span<const float> state) {
  mjData& d = *data_;
  for (std::size_t j = 0; j < kArm7Joints; ++j) d.qpos[j] = state[j];
  mj_kinematics(arm_.model.get(), &d);
  const mjtNum* tcp = d.site_xpos + 3 * arm_.tcp_site;
  const Arm7Vec way{target.position[0] - tcp[0], target.position[1] - tcp[1], target.position[2] - tcp[2]};

  // wanted: z down, y (along which the fingers move) at `yaw` from the world's; the error turns the one frame into the
  // other
  const double c = std::cos(target.yaw), s = std::sin(target.yaw);
  const mjtNum* now = d.site_xmat + 9 * arm_.tcp_site;
  // of the two hand poses half a turn apart, the one at hand
  const double sign = -s * now[1] + c * now[4] >= 0 ? 1 : -1;
  const mjtNum wanted[9] = {-sign * c, -sign * s, 0, -sign * s, sign * c, 0, 0, 0, -1};
  mjtNum between[9], quat[4], turn[3];
  mju_mulMatMatT(between, wanted, now, 3, 3, 3);
  mju_mat2Quat(quat, between);
  mju_quat2Vel(turn, quat, 1);

  const auto step =
      arm7_inverse_step(arm_, d, shortened(way, kLargestMove), shortened({turn[0], turn[1], turn[2]}, kLargestTurn));
  std::array<float, kArm7Joints + 1> action{};
  double largest = 1;  // all joints are slowed down alike, so that the tool keeps its direction
  std::array<double, kArm7Joints> asked{};
  for (std::size_t j = 0; j < kArm7Joints; ++j) {
    asked[j] = (step[j] - kBraking * static_cast<double>(state[kSpeed + j])) / kArm7JointStep;
    largest = std::max(largest, std::abs(asked[j]));
  }
  for (std::size_t j = 0; j < kArm7Joints; ++j) action[j] = static_cast<float>(asked[j] / largest);
  action[kArm7Joints] = target.closes ? 1.0F : -1.0F;
  return action;
}

std::array<float, kArm7Joints + 1> ScriptedArm7::act(std::span<const float> state) {
  const auto size = static_cast<std::size_t>(arm7_task_part_size(arm_.task)) + kArm7Proprio;
  TROUPE_CHECK(state.size() == size, "the state profile's observation of the task that the script was made for");
  return towards(arm_.task == Arm7Task::reach ? reach_target(state) : grasp_target(state), state);
}

}  // namespace troupe::env
