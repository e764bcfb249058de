#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <utility>

#include "base/random.h"
#include "env/episode_seed.h"
#include "env/registry/registry.h"
#include "tests/support/visible.h"

namespace troupe::testing {

/// Three agents, each pushing a point of its own along a line. One whose point leaves [-1, 1] dies; the episode is over
/// when all have. An agent observes its point and the mean of the three; its reward is minus its distance from the
/// middle. A reward that is no number, for all, where a push is kBreak.
class TeamEnv final : public Env {
 public:
  static constexpr const char* kId = "team-test-v1";
  static constexpr std::size_t kAgents = 3;
  static constexpr float kBreak = 0.8125F;
  static EnvSpec make_spec() {
    return {.id = kId,
            .observation = {{.name = "state", .shape = {2}, .low = -1.25, .high = 1.25}},
            .action = {.choices = 0, .size = 1, .low = {-1}, .high = {1}},
            .info = {"alive"},
            .max_steps = 50,
            .cameras = {},
            .agents = kAgents};
  }
  static void add() { register_env({kId, "an environment of tests", make_simple_env_factory<TeamEnv>}); }

  explicit TeamEnv(EnvSpec spec = make_spec()) : spec_(std::move(spec)) {}
  const EnvSpec& spec() const noexcept override { return spec_; }
  Result<void> reset(std::uint64_t seed, StepSlot out) override {
    CounterRng rng(seed, env_stream::reset, 0);
    for (float& x : at_) x = static_cast<float>(rng.uniform(-0.5, 0.5));
    lives_.fill(true);
    return observe(out);
  }
  Result<void> step(std::span<const float> action, StepSlot out) override {
    if (action.size() != kAgents) return Error{Errc::invalid_argument, "wants a push of each agent"};
    const bool breaks = std::find(action.begin(), action.end(), kBreak) != action.end();
    for (std::size_t i = 0; i < kAgents; ++i) {
      out.reward[i] = breaks ? std::nan("") : -7;  // of the dead it is not read
      if (!lives_[i]) continue;
      at_[i] += 0.25F * action[i];
      lives_[i] = std::abs(at_[i]) <= 1;
      if (!breaks) out.reward[i] = -static_cast<double>(std::abs(at_[i]));
      out.alive[i] = lives_[i] ? 1 : 0;
    }
    const auto alive = std::count(lives_.begin(), lives_.end(), true);
    *out.terminated = alive == 0;
    out.info[0] = static_cast<double>(alive);
    return observe(out);
  }
  Result<void> observe(StepSlot out) override {
    const auto observation = out.field<float>(0, 2 * kAgents);
    for (std::size_t i = 0; i < kAgents; ++i) {
      observation[2 * i] = at_[i];
      observation[2 * i + 1] = (at_[0] + at_[1] + at_[2]) / 3;
    }
    return {};
  }

 private:
  EnvSpec spec_;
  std::array<float, kAgents> at_{};
  std::array<bool, kAgents> lives_{};
};

}  // namespace troupe::testing
