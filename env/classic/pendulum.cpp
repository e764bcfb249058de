#include "env/classic/pendulum.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/check.h"
#include "base/random.h"
#include "env/episode_seed.h"

namespace troupe::env {

namespace {

constexpr double kGravity = 10.0;   // m/s^2
constexpr double kMass = 1.0;       // kg
constexpr double kLength = 1.0;     // m
constexpr double kDt = 0.05;        // s
constexpr double kMaxSpeed = 8.0;   // rad/s
constexpr double kMaxTorque = 2.0;  // N m

/// The same angle in [-pi, pi).
double wrap(double angle) {
  constexpr double turn = 2 * std::numbers::pi;
  const double rest = std::fmod(angle + std::numbers::pi, turn);
  return (rest < 0 ? rest + turn : rest) - std::numbers::pi;
}

void write_observation(const std::array<double, 2>& state, const StepSlot& out) {
  const auto observation = out.field<float>(0, 3);
  observation[0] = static_cast<float>(std::cos(state[0]));
  observation[1] = static_cast<float>(std::sin(state[0]));
  observation[2] = static_cast<float>(state[1]);
}

}  // namespace

EnvSpec Pendulum::make_spec() {
  EnvSpec spec;
  spec.id = "Pendulum-v1";
  spec.observation = {{.name = "state", .shape = {3}, .low = -kMaxSpeed, .high = kMaxSpeed, .unit = "1, 1, rad/s"}};
  spec.action.low = {static_cast<float>(-kMaxTorque)};
  spec.action.high = {static_cast<float>(kMaxTorque)};
  spec.action.unit = "N m";
  spec.max_steps = 200;
  spec.control_hz = 1 / kDt;
  return spec;
}

Result<void> Pendulum::reset(std::span<const std::int64_t> lanes, std::span<const std::uint64_t> seeds,
                             std::span<const StepSlot> out) {
  for (std::size_t i = 0; i < lanes.size(); ++i) {
    State& state = state_of(lanes[i]);
    CounterRng rng(seeds[i], env_stream::reset, 0);
    state[0] = rng.uniform(-std::numbers::pi, std::numbers::pi);
    state[1] = rng.uniform(-1.0, 1.0);
    write_observation(state, out[i]);
  }
  return {};
}

Result<void> Pendulum::step(std::span<const std::int64_t> lanes, std::span<const float> actions,
                            std::span<const StepSlot> out) {
  TROUPE_TRY(check_actions(spec(), lanes, actions));
  for (std::size_t i = 0; i < lanes.size(); ++i) {
    State& state = state_of(lanes[i]);
    *out[i].reward = advance(state, static_cast<double>(actions[i]));
    *out[i].terminated = false;
    write_observation(state, out[i]);
  }
  return {};
}

double Pendulum::advance(State& state, double torque) {
  const double u = std::clamp(torque, -kMaxTorque, kMaxTorque);
  const auto [angle, speed] = state;
  const double off = wrap(angle);
  const double cost = off * off + 0.1 * speed * speed + 0.001 * u * u;
  const double faster =
      speed + (3 * kGravity / (2 * kLength) * std::sin(angle) + 3.0 / (kMass * kLength * kLength) * u) * kDt;
  state[1] = std::clamp(faster, -kMaxSpeed, kMaxSpeed);
  state[0] = angle + state[1] * kDt;
  return -cost;
}

void Pendulum::set_state(std::span<const double> state) {
  TROUPE_CHECK(state.size() == state_of(0).size(), "Pendulum has two numbers of state");
  std::copy(state.begin(), state.end(), state_of(0).begin());
}

}  // namespace troupe::env
