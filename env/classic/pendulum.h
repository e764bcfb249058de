#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/result.h"
#include "env/classic/lane_states.h"

namespace troupe::env {

/// Pendulum-v1: swing a pendulum up and hold it with a torque in [-2, 2] N m that is too weak to lift it at once. Never
/// terminates. Angle 0 is up.
///     observation "state" f32 [3]: cos angle, sin angle, angular speed in rad/s
///     reward -(angle^2 + 0.1 speed^2 + 0.001 torque^2), angle in [-pi, pi), before the step
/// Source: Gymnasium's Pendulum-v1; everything in f64 (Gymnasium computes the torque's share in the action's dtype).
class Pendulum final : public LaneStates<std::array<double, 2>> {
 public:
  static EnvSpec make_spec();
  explicit Pendulum(EnvSpec spec = make_spec(), std::int64_t lanes = 1) : LaneStates(std::move(spec), lanes) {}

  Result<void> reset(std::span<const std::int64_t> lanes, std::span<const std::uint64_t> seeds,
                     std::span<const StepSlot> out) override;
  Result<void> step(std::span<const std::int64_t> lanes, std::span<const float> actions,
                    std::span<const StepSlot> out) override;

  /// One step of lane 0 with a torque in full precision, clipped to the bounds; returns the reward.
  double advance(double torque) { return advance(state_of(0), torque); }
  /// Angle (not wrapped) and angular speed of lane 0, as state() gives them.
  void set_state(std::span<const double> state);
  std::vector<double> state() const { return {state_of(0).begin(), state_of(0).end()}; }

 private:
  /// Angle and angular speed.
  using State = std::array<double, 2>;
  static double advance(State& state, double torque);
};

}  // namespace troupe::env
