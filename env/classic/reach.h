#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <utility>

#include "base/result.h"
#include "env/classic/lane_states.h"

namespace troupe::env {

/// reach-v1: a point in the plane is steered by its velocity to a goal 0.3 to 1 m away. Reward 1 and the end of the
/// episode within 0.1 m of it, else 0. Smooth and without inertia, so that chunks of actions lose little.
///     observation "state" f32 [4]: position in m, goal - position in m
///     action f32 [2]: velocity in m/s
class Reach final : public LaneStates<std::array<double, 4>> {
 public:
  static EnvSpec make_spec();
  explicit Reach(EnvSpec spec = make_spec(), std::int64_t lanes = 1) : LaneStates(std::move(spec), lanes) {}

  Result<void> reset(std::span<const std::int64_t> lanes, std::span<const std::uint64_t> seeds,
                     std::span<const StepSlot> out) override;
  Result<void> step(std::span<const std::int64_t> lanes, std::span<const float> actions,
                    std::span<const StepSlot> out) override;

 private:
  /// Position and goal.
  using State = std::array<double, 4>;
  static void write_observation(const State& state, const StepSlot& out);
};

}  // namespace troupe::env
