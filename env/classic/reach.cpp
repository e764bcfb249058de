#include "env/classic/reach.h"

#include <algorithm>
#include <cmath>
#include <numbers>

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

Result<void> Reach::reset(std::span<const std::int64_t> lanes, std::span<const std::uint64_t> seeds,
                          std::span<const StepSlot> out) {
  for (std::size_t i = 0; i < lanes.size(); ++i) {
    State& state = state_of(lanes[i]);
    CounterRng rng(seeds[i], env_stream::reset, 0);
    const double angle = rng.uniform(-std::numbers::pi, std::numbers::pi), distance = rng.uniform(kNearest, kFarthest);
    for (std::size_t axis = 0; axis < 2; ++axis) state[axis] = rng.uniform(-0.5, 0.5);
    state[2] = state[0] + distance * std::cos(angle);
    state[3] = state[1] + distance * std::sin(angle);
    write_observation(state, out[i]);
  }
  return {};
}

Result<void> Reach::step(std::span<const std::int64_t> lanes, std::span<const float> actions,
                         std::span<const StepSlot> out) {
  TROUPE_TRY(check_actions(spec(), lanes, actions));
  for (std::size_t i = 0; i < lanes.size(); ++i) {
    State& state = state_of(lanes[i]);
    for (std::size_t axis = 0; axis < 2; ++axis) {
      const double velocity = std::clamp(static_cast<double>(actions[2 * i + axis]), -1.0, 1.0);
      state[axis] = std::clamp(state[axis] + kDt * velocity, -kWall, kWall);
    }
    const bool reached = std::hypot(state[2] - state[0], state[3] - state[1]) < kReached;
    *out[i].reward = reached ? 1 : 0;
    *out[i].terminated = *out[i].success = reached;
    write_observation(state, out[i]);
  }
  return {};
}

void Reach::write_observation(const State& state, const StepSlot& out) {
  const auto observation = out.field<float>(0, 4);
  for (std::size_t i = 0; i < 2; ++i) {
    observation[i] = static_cast<float>(state[i]);
    observation[i + 2] = static_cast<float>(state[i + 2] - state[i]);
  }
}

}  // namespace troupe::env
