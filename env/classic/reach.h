#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <utility>

#include "base/result.h"
#include "env/env.h"

namespace troupe::env {

/// reach-v1: a point in the plane is steered by its velocity to a goal 0.3 to 1 m away. Reward 1 and the end of the
/// episode within 0.1 m of it, else 0. Smooth and without inertia, so that chunks of actions lose little.
///     observation "state" f32 [4]: position in m, goal - position in m
///     action f32 [2]: velocity in m/s
class Reach final : public Env {
 public:
  static EnvSpec make_spec();
  explicit Reach(EnvSpec spec = make_spec()) : spec_(std::move(spec)) {}

  const EnvSpec& spec() const noexcept override { return spec_; }
  Result<void> reset(std::uint64_t seed, StepSlot out) override;
  Result<void> step(std::span<const float> action, StepSlot out) override;
  std::uint64_t state_hash() const override;

 private:
  void observe_into(const StepSlot& out) const;
  EnvSpec spec_;
  std::array<double, 4> state_{};  // position, goal
};

}  // namespace troupe::env
