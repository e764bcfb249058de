#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "env/batch_env.h"

namespace troupe::env {

/// reach-v1: a point in the plane is steered by its velocity to a goal 0.3 to 1 m away. Reward 1 and the end of the
/// episode within 0.1 m of it, else 0. Smooth and without inertia, so that chunks of actions lose little.
///     observation "state" f32 [4]: position in m, goal - position in m
///     action f32 [2]: velocity in m/s
class Reach final : public BatchEnv {
 public:
  static EnvSpec make_spec();
  explicit Reach(EnvSpec spec = make_spec(), std::int64_t lanes = 1);

  const EnvSpec& spec() const noexcept override { return spec_; }
  std::int64_t lanes() const noexcept override { return static_cast<std::int64_t>(states_.size()); }
  Result<void> reset(std::span<const std::int64_t> lanes, std::span<const std::uint64_t> seeds,
                     std::span<const StepSlot> out) override;
  Result<void> step(std::span<const std::int64_t> lanes, std::span<const float> actions,
                    std::span<const StepSlot> out) override;
  std::uint64_t state_hash(std::int64_t lane) const override;

 private:
  /// Position and goal.
  using State = std::array<double, 4>;
  static void write_observation(const State& state, const StepSlot& out);
  EnvSpec spec_;
  std::vector<State> states_;  // of each lane
};

}  // namespace troupe::env
