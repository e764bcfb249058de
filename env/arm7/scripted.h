#pragma once

#include <array>
#include <span>

#include "base/result.h"
#include "env/arm7/arm7_model.h"

namespace troupe::env {

/// A controller written by hand, for tests and demonstrations: reads the `state` profile's observation, returns `joint`
/// actions. reach: goes to the goal; lift: hovers over the cube, aligned with its faces, goes down, grasps, lifts;
/// pick_place: as lift, then carries it to the goal. Deterministic. Not thread-safe.
class ScriptedArm7 {
 public:
  /// Errors: invalid_argument (push has no script); those of make_arm7_model.
  static Result<ScriptedArm7> make(Arm7Task task);

  /// Before the first observation of an episode.
  void reset();
  /// The action at an observation "state" of the task.
  std::array<float, kArm7Joints + 1> act(std::span<const float> state);

 private:
  /// Of grasping: above the cube, down to it, closing the gripper, moving it.
  enum class Phase { hover, descend, grasp, carry };
  /// Where the tcp is to be, and the angle about the vertical of its fingers' line.
  struct Target {
    Arm7Vec position;
    double yaw;
    bool closes;
  };
  ScriptedArm7(Arm7Model arm, MujocoData data);
  Target reach_target(std::span<const float> state) const;
  Target grasp_target(std::span<const float> state);
  std::array<float, kArm7Joints + 1> towards(const Target& target, std::span<const float> state);

  /// Kinematics only.
  Arm7Model arm_;
  MujocoData data_;
  Phase phase_ = Phase::hover;
  /// Steps in `grasp`.
  int waited_ = 0;
};

}  // namespace troupe::env
