#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/result.h"
#include "env/classic/lane_states.h"

namespace troupe::env {

/// CartPole-v1: a pole stands on a cart that is pushed left (0) or right (1) with 10 N; reward 1 per step, over when
/// the pole leans more than 12 degrees or the cart leaves the track.
///     observation "state" f32 [4]: x in m, its speed, angle in rad, its speed
/// Source: Gymnasium's CartPole-v1 (Barto, Sutton, Anderson 1983); state in f64, Euler steps of 0.02 s.
class CartPole final : public LaneStates<std::array<double, 4>> {
 public:
  /// 500 steps, reward threshold of Gymnasium.
  static EnvSpec make_spec();
  explicit CartPole(EnvSpec spec = make_spec(), std::int64_t lanes = 1) : LaneStates(std::move(spec), lanes) {}

  Result<void> reset(std::span<const std::int64_t> lanes, std::span<const std::uint64_t> seeds,
                     std::span<const StepSlot> out) override;
  Result<void> step(std::span<const std::int64_t> lanes, std::span<const float> actions,
                    std::span<const StepSlot> out) override;

  /// x, speed, angle, angular speed of lane 0, as state() gives them.
  void set_state(std::span<const double> state);
  std::vector<double> state() const { return {state_of(0).begin(), state_of(0).end()}; }

 private:
  /// x, speed, angle, angular speed.
  using State = std::array<double, 4>;
};

}  // namespace troupe::env
