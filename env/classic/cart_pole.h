#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/result.h"
#include "env/env.h"

namespace troupe::env {

/// CartPole-v1: a pole stands on a cart that is pushed left (0) or right (1) with 10 N; reward 1 per step, over when
/// the pole leans more than 12 degrees or the cart leaves the track.
///     observation "state" f32 [4]: x in m, its speed, angle in rad, its speed
/// Source: Gymnasium's CartPole-v1 (Barto, Sutton, Anderson 1983); state in f64, Euler steps of 0.02 s.
class CartPole final : public Env {
 public:
  /// 500 steps, reward threshold of Gymnasium.
  static EnvSpec make_spec();
  explicit CartPole(EnvSpec spec = make_spec()) : spec_(std::move(spec)) {}

  const EnvSpec& spec() const noexcept override { return spec_; }
  Result<void> reset(std::uint64_t seed, StepSlot out) override;
  Result<void> step(std::span<const float> action, StepSlot out) override;
  /// Of the bits of the state.
  std::uint64_t state_hash() const override;

  /// x, speed, angle, angular speed, as state() gives them.
  void set_state(std::span<const double> state);
  std::vector<double> state() const { return {state_.begin(), state_.end()}; }

 private:
  void observe_into(const StepSlot& out) const;
  EnvSpec spec_;
  std::array<double, 4> state_{};
};

}  // namespace troupe::env
