#include "env/classic/reach.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/hash.h"
#include "base/random.h"
#include "env/episode_seed.h"

namespace troupe::env {

namespace {

constexpr double kDt = 0.1;                        // s
constexpr double kReached = 0.1;                   // m
constexpr double kNearest = 0.3, kFarthest = 1.0;  // m: the goal from the start
constexpr double kWall = 2.0;                      // m: the point stays within it on either axis

}  // namespace

EnvSpec Reach::make_spec() {
  EnvSpec spec;
  spec.id = "reach-v1";
  spec.observation = {{.name = "state", .shape = {4}, .low = -2 * kWall, .high = 2 * kWall, .unit = "m"}};
  spec.action.size = 2;
  spec.action.low = {-1, -1};
  spec.action.high = {1, 1};
  spec.action.unit = "m/s";
  spec.has_success = true;
  spec.max_steps = 50;
  spec.control_hz = 1 / kDt;
  spec.reward_threshold = 0.9;
  return spec;
}

Result<void> Reach::reset(std::uint64_t seed, StepSlot out) {
  CounterRng rng(seed, env_stream::reset, 0);
  const double angle = rng.uniform(-std::numbers::pi, std::numbers::pi), distance = rng.uniform(kNearest, kFarthest);
  for (int i = 0; i < 2; ++i) state_[static_cast<std::size_t>(i)] = rng.uniform(-0.5, 0.5);
  state_[2] = state_[0] + distance * std::cos(angle);
  state_[3] = state_[1] + distance * std::sin(angle);
  observe_into(out);
  return {};
}

Result<void> Reach::step(std::span<const float> action, StepSlot out) {
  if (action.size() != 2) return invalid_argument(fmt::format("reach-v1: {} actions, wants 2", action.size()));
  for (std::size_t i = 0; i < 2; ++i) {
    const double velocity = std::clamp(static_cast<double>(action[i]), -1.0, 1.0);
    state_[i] = std::clamp(state_[i] + kDt * velocity, -kWall, kWall);
  }
  const bool reached = std::hypot(state_[2] - state_[0], state_[3] - state_[1]) < kReached;
  *out.reward = reached ? 1 : 0;
  *out.terminated = *out.success = reached;
  observe_into(out);
  return {};
}

void Reach::observe_into(const StepSlot& out) const {
  const auto observation = out.field<float>(0, 4);
  for (std::size_t i = 0; i < 2; ++i) {
    observation[i] = static_cast<float>(state_[i]);
    observation[i + 2] = static_cast<float>(state_[i + 2] - state_[i]);
  }
}

std::uint64_t Reach::state_hash() const { return xxh3_64(std::as_bytes(std::span(state_))); }

}  // namespace troupe::env
