#include "env/classic/cart_pole.h"

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

constexpr double kGravity = 9.8;                               // m/s^2
constexpr double kCartMass = 1.0, kPoleMass = 0.1;             // kg
constexpr double kHalfLength = 0.5;                            // m: from the hinge to the pole's centre
constexpr double kForce = 10.0;                                // N
constexpr double kDt = 0.02;                                   // s
constexpr double kMaxAngle = 12 * 2 * std::numbers::pi / 360;  // rad
constexpr double kMaxPosition = 2.4;                           // m
constexpr double kStart = 0.05;                                // of each number of the state

}  // namespace

EnvSpec CartPole::make_spec() {
  EnvSpec spec;
  spec.id = "CartPole-v1";
  spec.observation = {{.name = "state", .shape = {4}, .unit = "m, m/s, rad, rad/s"}};
  spec.action.choices = 2;
  spec.max_steps = 500;
  spec.control_hz = 1 / kDt;
  spec.reward_threshold = 475;
  return spec;
}

Result<void> CartPole::reset(std::uint64_t seed, StepSlot out) {
  CounterRng rng(seed, env_stream::reset, 0);
  for (double& s : state_) s = rng.uniform(-kStart, kStart);
  observe_into(out);
  return {};
}

Result<void> CartPole::step(std::span<const float> action, StepSlot out) {
  if (action.size() != 1) return invalid_argument(fmt::format("CartPole-v1: {} actions, wants 1", action.size()));
  const auto [x, speed, angle, spin] = state_;
  const double force = action[0] == 1 ? kForce : -kForce;
  constexpr double total_mass = kCartMass + kPoleMass, pole_moment = kPoleMass * kHalfLength;
  const double cosine = std::cos(angle), sine = std::sin(angle);
  // The squares first, as Gymnasium does: an upright pole multiplies a difference of rounding at every step.
  const double push = (force + pole_moment * (spin * spin) * sine) / total_mass;
  const double turning =
      (kGravity * sine - cosine * push) / (kHalfLength * (4.0 / 3.0 - kPoleMass * (cosine * cosine) / total_mass));
  const double pushing = push - pole_moment * turning * cosine / total_mass;
  // Euler with the old speeds: positions first.
  state_ = {x + kDt * speed, speed + kDt * pushing, angle + kDt * spin, spin + kDt * turning};
  *out.reward = 1;
  *out.terminated = std::abs(state_[0]) > kMaxPosition || std::abs(state_[2]) > kMaxAngle;
  observe_into(out);
  return {};
}

void CartPole::observe_into(const StepSlot& out) const {
  const auto observation = out.field<float>(0, state_.size());
  for (std::size_t i = 0; i < state_.size(); ++i) observation[i] = static_cast<float>(state_[i]);
}

std::uint64_t CartPole::state_hash() const { return xxh3_64(std::as_bytes(std::span(state_))); }

void CartPole::set_state(std::span<const double> state) {
  TROUPE_CHECK(state.size() == state_.size(), "CartPole has four numbers of state");
  std::copy(state.begin(), state.end(), state_.begin());
}

}  // namespace troupe::env
