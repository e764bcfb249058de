#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/result.h"
#include "env/env.h"

namespace troupe::env {

/// Pendulum-v1: swing a pendulum up and hold it with a torque in [-2, 2] N m that is too weak to lift it at once. Never
/// terminates. Angle 0 is up.
///     observation "state" f32 [3]: cos angle, sin angle, angular speed in rad/s
///     reward -(angle^2 + 0.1 speed^2 + 0.001 torque^2), angle in [-pi, pi), before the step
/// Source: Gymnasium's Pendulum-v1; everything in f64 (Gymnasium computes the torque's share in the action's dtype).
class Pendulum final : public Env {
 public:
  static EnvSpec make_spec();
  explicit Pendulum(EnvSpec spec = make_spec()) : spec_(std::move(spec)) {}

  const EnvSpec& spec() const noexcept override { return spec_; }
  Result<void> reset(std::uint64_t seed, StepSlot out) override;
  Result<void> step(std::span<const float> action, StepSlot out) override;
  std::uint64_t state_hash() const override;

  /// One step with a torque in full precision, clipped to the bounds; returns the reward.
  double advance(double torque);
  /// Angle (not wrapped) and angular speed, as state() gives them.
  void set_state(std::span<const double> state);
  std::vector<double> state() const { return {state_.begin(), state_.end()}; }

 private:
  void observe_into(const StepSlot& out) const;
  EnvSpec spec_;
  std::array<double, 2> state_{};
};

}  // namespace troupe::env
