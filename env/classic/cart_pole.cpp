#include "env/classic/cart_pole.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/check.h"
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

/// Poles of as many lanes as are computed at once: a loop over a fixed number of them has no remainder, so that every
/// lane takes the same instructions and has the same bits wherever it stands.
constexpr std::size_t kWidth = 4;
using Each = std::array<double, kWidth>;
struct Poles {
  Each x{}, speed{}, angle{}, spin{}, force{}, sine{}, cosine{};
};

void advance(Poles& p) {
  constexpr double total_mass = kCartMass + kPoleMass, pole_moment = kPoleMass * kHalfLength;
  for (std::size_t i = 0; i < kWidth; ++i) {
    p.sine[i] = std::sin(p.angle[i]);
    p.cosine[i] = std::cos(p.angle[i]);
  }
  for (std::size_t i = 0; i < kWidth; ++i) {
    const double sine = p.sine[i], cosine = p.cosine[i], speed = p.speed[i], spin = p.spin[i];
    // The squares first, as Gymnasium does: an upright pole multiplies a difference of rounding at every step.
    const double push = (p.force[i] + pole_moment * (spin * spin) * sine) / total_mass;
    const double turning =
        (kGravity * sine - cosine * push) / (kHalfLength * (4.0 / 3.0 - kPoleMass * (cosine * cosine) / total_mass));
    const double pushing = push - pole_moment * turning * cosine / total_mass;
    // Euler with the old speeds: positions first.
    p.x[i] += kDt * speed;
    p.speed[i] = speed + kDt * pushing;
    p.angle[i] += kDt * spin;
    p.spin[i] = spin + kDt * turning;
  }
}

void write_observation(const std::array<double, 4>& state, const StepSlot& out) {
  const auto observation = out.field<float>(0, state.size());
  for (std::size_t i = 0; i < state.size(); ++i) observation[i] = static_cast<float>(state[i]);
}

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

Result<void> CartPole::reset(std::span<const std::int64_t> lanes, std::span<const std::uint64_t> seeds,
                             std::span<const StepSlot> out) {
  for (std::size_t i = 0; i < lanes.size(); ++i) {
    State& state = state_of(lanes[i]);
    CounterRng rng(seeds[i], env_stream::reset, 0);
    for (double& s : state) s = rng.uniform(-kStart, kStart);
    write_observation(state, out[i]);
  }
  return {};
}

Result<void> CartPole::step(std::span<const std::int64_t> lanes, std::span<const float> actions,
                            std::span<const StepSlot> out) {
  TROUPE_TRY(check_actions(spec(), lanes, actions));
  for (std::size_t first = 0; first < lanes.size(); first += kWidth) {
    const std::size_t count = std::min(kWidth, lanes.size() - first);
    Poles poles;
    for (std::size_t i = 0; i < count; ++i) {
      const State& state = state_of(lanes[first + i]);
      poles.x[i] = state[0], poles.speed[i] = state[1], poles.angle[i] = state[2], poles.spin[i] = state[3];
      poles.force[i] = actions[first + i] == 1 ? kForce : -kForce;
    }
    advance(poles);
    for (std::size_t i = 0; i < count; ++i) {
      State& state = state_of(lanes[first + i]);
      state = {poles.x[i], poles.speed[i], poles.angle[i], poles.spin[i]};
      const StepSlot& slot = out[first + i];
      *slot.reward = 1;
      *slot.terminated = std::abs(state[0]) > kMaxPosition || std::abs(state[2]) > kMaxAngle;
      write_observation(state, slot);
    }
  }
  return {};
}

void CartPole::set_state(std::span<const double> state) {
  TROUPE_CHECK(state.size() == state_of(0).size(), "CartPole has four numbers of state");
  std::copy(state.begin(), state.end(), state_of(0).begin());
}

}  // namespace troupe::env
