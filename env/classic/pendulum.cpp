#include "env/classic/pendulum.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/check.h"
#include "base/hash.h"
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

Result<void> Pendulum::reset(std::uint64_t seed, StepSlot out) {
  CounterRng rng(seed, env_stream::reset, 0);
  state_[0] = rng.uniform(-std::numbers::pi, std::numbers::pi);
  state_[1] = rng.uniform(-1.0, 1.0);
  observe_into(out);
  return {};
}

Result<void> Pendulum::step(std::span<const float> action, StepSlot out) {
  if (action.size() != 1) return invalid_argument(fmt::format("Pendulum-v1: {} actions, wants 1", action.size()));
  *out.reward = advance(static_cast<double>(action[0]));
  *out.terminated = false;
  observe_into(out);
  return {};
}

double Pendulum::advance(double torque) {
  const double u = std::clamp(torque, -kMaxTorque, kMaxTorque);
  const auto [angle, speed] = state_;
  const double off = wrap(angle);
  const double cost = off * off + 0.1 * speed * speed + 0.001 * u * u;
  const double faster =
      speed + (3 * kGravity / (2 * kLength) * std::sin(angle) + 3.0 / (kMass * kLength * kLength) * u) * kDt;
  state_[1] = std::clamp(faster, -kMaxSpeed, kMaxSpeed);
  state_[0] = angle + state_[1] * kDt;
  return -cost;
}

void Pendulum::observe_into(const StepSlot& out) const {
  const auto observation = out.field<float>(0, 3);
  observation[0] = static_cast<float>(std::cos(state_[0]));
  observation[1] = static_cast<float>(std::sin(state_[0]));
  observation[2] = static_cast<float>(state_[1]);
}

std::uint64_t Pendulum::state_hash() const { return xxh3_64(std::as_bytes(std::span(state_))); }

void Pendulum::set_state(std::span<const double> state) {
  TROUPE_CHECK(state.size() == state_.size(), "Pendulum has two numbers of state");
  std::copy(state.begin(), state.end(), state_.begin());
}

}  // namespace troupe::env
