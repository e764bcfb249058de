#include "env/arm7/arm7_control.h"

#include <algorithm>

#include "base/check.h"

namespace troupe::env {
namespace {

constexpr double kDamping = 0.0025;
constexpr int kMaxVelocities = 16;  // 9 of the arm, 6 of the cube
constexpr float kCloses = 0.5F;     // joint_abs

}  // namespace

ActionSpace arm7_action_space(Arm7Control control) {
  ActionSpace space;
  space.size = control == Arm7Control::ee ? 7 : 8;
  const auto size = static_cast<std::size_t>(space.size);
  if (control != Arm7Control::joint_abs) {
    space.low.assign(size, -1);
    space.high.assign(size, 1);
    space.unit = control == Arm7Control::ee ? "0.03 m, 0.15 rad, gripper" : "0.10 rad, gripper";
    return space;
  }
  for (std::size_t j = 0; j < kArm7Joints; ++j) {
    space.low.push_back(static_cast<float>(kArm7JointLow[j]));
    space.high.push_back(static_cast<float>(kArm7JointHigh[j]));
  }
  space.low.push_back(0);
  space.high.push_back(1);
  space.unit = "rad, gripper";
  return space;
}

std::array<double, kArm7Joints> arm7_inverse_step(const Arm7Model& arm, mjData& data, const Arm7Vec& move,
                                                  const Arm7Vec& turn) {
  const mjModel* m = arm.model.get();
  const auto nv = static_cast<std::size_t>(m->nv);
  TROUPE_CHECK(nv <= kMaxVelocities, "the arm, its fingers and one cube");
  mjtNum jacobian[6 * kMaxVelocities];
  mj_comPos(m, &data);
  mj_jacSite(m, &data, jacobian, jacobian + 3 * nv, arm.tcp_site);
  mjtNum error[6], square[36], solved[6];
  for (std::size_t k = 0; k < 3; ++k) error[k] = move[k], error[k + 3] = turn[k];
  for (std::size_t i = 0; i < 6; ++i) {
    for (std::size_t k = 0; k < 6; ++k) {
      mjtNum sum = i == k ? kDamping : 0;
      for (std::size_t j = 0; j < kArm7Joints; ++j) sum += jacobian[i * nv + j] * jacobian[k * nv + j];
      square[6 * i + k] = sum;
    }
  }
  mju_cholFactor(square, 6, 0);
  mju_cholSolve(solved, square, error, 6);
  std::array<double, kArm7Joints> step{};
  for (std::size_t j = 0; j < kArm7Joints; ++j) {
    for (std::size_t i = 0; i < 6; ++i) step[j] += jacobian[i * nv + j] * solved[i];
    step[j] = std::clamp(step[j], -kArm7LargestStep, kArm7LargestStep);
  }
  return step;
}

bool apply_arm7_action(const Arm7Model& arm, mjData& data, Arm7Control control, std::span<const float> action) {
  std::array<double, kArm7Joints> step{};
  if (control == Arm7Control::ee) {
    const auto part = [&](std::size_t i, double unit) { return unit * static_cast<double>(action[i]); };
    step = arm7_inverse_step(arm, data, {part(0, kArm7MoveStep), part(1, kArm7MoveStep), part(2, kArm7MoveStep)},
                             {part(3, kArm7TurnStep), part(4, kArm7TurnStep), part(5, kArm7TurnStep)});
  }
  for (std::size_t j = 0; j < kArm7Joints; ++j) {
    const auto a = static_cast<double>(control == Arm7Control::ee ? 0.0F : action[j]);
    if (control == Arm7Control::joint) step[j] = kArm7JointStep * a;
    if (control == Arm7Control::joint_abs) step[j] = std::clamp(a - data.qpos[j], -kArm7LargestStep, kArm7LargestStep);
    data.ctrl[j] = std::clamp(data.qpos[j] + step[j], kArm7JointLow[j], kArm7JointHigh[j]);
  }
  const bool closes = action.back() > (control == Arm7Control::joint_abs ? kCloses : 0.0F);
  data.ctrl[kArm7Joints] = closes ? kFingerClosed : kFingerOpen;
  return closes;
}

}  // namespace troupe::env
