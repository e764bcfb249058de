#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/random.h"
#include "env/episode_seed.h"
#include "env/registry/registry.h"
#include "tests/support/visible.h"

namespace troupe::testing {

/// Two levers, of which an episode's text names one, in one of two ways: the reward of a step is 1 for that lever, else
/// 0. An episode has four steps, and nothing but the text says which lever it is.
class ToldEnv final : public Env {
 public:
  static constexpr const char* kId = "told-test-v1";
  static constexpr std::size_t kBytes = 48;
  static EnvSpec make_spec() {
    return {.id = kId,
            .observation = {{.name = "order", .shape = {kBytes}, .dtype = EnvDType::u8, .reader = EnvReader::text},
                            {.name = "state", .shape = {1}}},
            .action = {.choices = 2, .size = 1, .low = {}, .high = {}},
            .info = {},
            .max_steps = 4,
            .cameras = {}};
  }
  static void add() { register_env({kId, "an environment of tests", make_simple_env_factory<ToldEnv>}); }

  explicit ToldEnv(EnvSpec spec = make_spec()) : spec_(std::move(spec)) {}
  const EnvSpec& spec() const noexcept override { return spec_; }
  Result<void> reset(std::uint64_t seed, StepSlot out) override {
    CounterRng rng(seed, env_stream::reset, 0);
    lever_ = static_cast<float>(rng.below(2));
    phrase_ = rng.below(2);
    step_ = 0;
    return observe(out);
  }
  Result<void> step(std::span<const float> action, StepSlot out) override {
    ++step_;
    *out.reward = action[0] == lever_ ? 1 : 0;
    *out.terminated = false;
    return observe(out);
  }
  Result<void> observe(StepSlot out) override {
    const std::string_view which = lever_ == 0 ? "left" : "right";
    out.write_text(0, kBytes,
                   phrase_ == 0 ? "Push the " + std::string(which) + " lever." : std::string(which) + ", please");
    out.field<float>(1, 1)[0] = static_cast<float>(step_);
    return {};
  }

 private:
  EnvSpec spec_;
  float lever_ = 0;
  std::uint32_t phrase_ = 0;
  std::int64_t step_ = 0;
};

}  // namespace troupe::testing
