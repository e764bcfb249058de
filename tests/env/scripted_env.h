#pragma once

#include <atomic>
#include <functional>
#include <limits>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include "env/env_factory.h"
#include "tests/support/visible.h"

namespace troupe::testing {

/// What a test has environments do; shared by all of a factory.
struct EnvScript {
  std::atomic<int> failing_resets{0}, failing_makes{0};  ///< the next so many fail
  std::function<void()> gate = [] {};                    ///< called by a step with act::wait
  bool on_demand = false;                                ///< EnvSpec::observes_on_demand
  std::atomic<int> observed{0};                          ///< observations that were written
  std::int64_t max_lanes = 1;                            ///< EnvFactory::max_lanes
};

/// Actions that make ScriptedEnv do something beside counting.
namespace act {
inline constexpr float go = 0, cut = 0.125f, fail_alone = 0.1875f, finish = 0.25f, succeed = 0.375f, wait = 0.5f,
                       refuse = 0.625f, fail = 0.75f, bad_reward = 0.875f, bad_observation = 0.9375f;
}
inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

/// An environment that does what its actions say. Observation f32 [2]: the seed modulo 1009, steps since the reset. The
/// reward is the number of the step.
class ScriptedEnv final : public Env {
 public:
  static EnvSpec make_spec() {
    EnvSpec spec;
    spec.id = "scripted-v1";
    spec.observation = {{.name = "state", .shape = {2}}};
    spec.action.low = {-1};
    spec.action.high = {1};
    spec.info = {"step"};
    spec.has_success = true;
    return spec;
  }
  ScriptedEnv(EnvSpec spec, std::shared_ptr<EnvScript> script) : spec_(std::move(spec)), script_(std::move(script)) {}

  const EnvSpec& spec() const noexcept override { return spec_; }
  Result<void> reset(std::uint64_t seed, StepSlot out) override {
    if (script_->failing_resets.fetch_sub(1) > 0) throw std::runtime_error("reset as scripted");
    seed_ = static_cast<float>(seed % 1009);
    step_ = 0;
    return observe(out);
  }
  Result<void> step(std::span<const float> action, StepSlot out) override {
    const float a = action[0];
    if (a == act::fail) throw std::runtime_error("as scripted");
    if (a == act::refuse) return Error{Errc::internal, "refused as scripted"};
    if (a == act::wait) script_->gate();
    ++step_;
    *out.reward = a == act::bad_reward ? std::numeric_limits<double>::quiet_NaN() : step_;
    *out.terminated = a == act::finish || a == act::succeed;
    *out.truncated = a == act::cut;
    if (a == act::fail_alone) *out.failure = Error{Errc::internal, "alone, as scripted"};
    *out.success = a == act::succeed;
    out.info[0] = step_;
    if (a == act::bad_observation) seed_ = std::numeric_limits<float>::quiet_NaN();
    if (out.observation.empty()) return {};
    return observe(out);
  }
  Result<void> observe(StepSlot out) override {
    const auto observation = out.field<float>(0, 2);
    observation[0] = seed_;
    observation[1] = static_cast<float>(step_);
    ++script_->observed;
    return {};
  }
  std::uint64_t state_hash() const override {
    return static_cast<std::uint64_t>(seed_) << 32 | static_cast<std::uint32_t>(step_);
  }

 private:
  EnvSpec spec_;
  std::shared_ptr<EnvScript> script_;
  float seed_ = 0;
  int step_ = 0;
};

/// ScriptedEnvs as lanes: what one of them throws or refuses, the call does.
class ScriptedBatch final : public BatchEnv {
 public:
  explicit ScriptedBatch(std::vector<ScriptedEnv> envs) : envs_(std::move(envs)) {}
  const EnvSpec& spec() const noexcept override { return envs_[0].spec(); }
  std::int64_t lanes() const noexcept override { return static_cast<std::int64_t>(envs_.size()); }
  Result<void> reset(std::span<const std::int64_t> lanes, std::span<const std::uint64_t> seeds,
                     std::span<const StepSlot> out) override {
    for (std::size_t i = 0; i < lanes.size(); ++i) TROUPE_TRY(env(lanes[i]).reset(seeds[i], out[i]));
    return {};
  }
  Result<void> step(std::span<const std::int64_t> lanes, std::span<const float> actions,
                    std::span<const StepSlot> out) override {
    for (std::size_t i = 0; i < lanes.size(); ++i) TROUPE_TRY(env(lanes[i]).step(actions.subspan(i, 1), out[i]));
    return {};
  }
  Result<void> observe(std::int64_t lane, StepSlot out) override { return env(lane).observe(out); }
  std::uint64_t state_hash(std::int64_t lane) const override {
    return envs_[static_cast<std::size_t>(lane)].state_hash();
  }

 private:
  ScriptedEnv& env(std::int64_t lane) { return envs_[static_cast<std::size_t>(lane)]; }
  std::vector<ScriptedEnv> envs_;
};

class ScriptedEnvFactory final : public EnvFactory {
 public:
  explicit ScriptedEnvFactory(std::shared_ptr<EnvScript> script = std::make_shared<EnvScript>())
      : script_(std::move(script)) {
    spec_.observes_on_demand = script_->on_demand;
  }
  const EnvSpec& spec() const noexcept override { return spec_; }
  Result<std::unique_ptr<Env>> make() const override {
    if (script_->failing_makes.fetch_sub(1) > 0) return Error{Errc::unavailable, "not made, as scripted"};
    return std::unique_ptr<Env>(std::make_unique<ScriptedEnv>(spec_, script_));
  }
  std::int64_t max_lanes() const noexcept override { return script_->max_lanes; }
  Result<std::unique_ptr<BatchEnv>> make_batch(std::int64_t lanes) const override {
    if (script_->max_lanes == 1) return EnvFactory::make_batch(lanes);
    if (script_->failing_makes.fetch_sub(1) > 0) return Error{Errc::unavailable, "not made, as scripted"};
    std::vector<ScriptedEnv> envs;
    for (std::int64_t lane = 0; lane < lanes; ++lane) envs.emplace_back(spec_, script_);
    return std::unique_ptr<BatchEnv>(std::make_unique<ScriptedBatch>(std::move(envs)));
  }

 private:
  std::shared_ptr<EnvScript> script_;
  EnvSpec spec_ = ScriptedEnv::make_spec();
};

inline std::shared_ptr<const EnvFactory> scripted(std::shared_ptr<EnvScript> script = std::make_shared<EnvScript>()) {
  return std::make_shared<ScriptedEnvFactory>(std::move(script));
}

}  // namespace troupe::testing
