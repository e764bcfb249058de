#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "env/registry/registry.h"
#include "tests/support/visible.h"

namespace troupe::testing {

/// An environment in which the seed alone decides: an episode of 1 to 7 steps, its rewards, and (every other seed)
/// success. What a policy does makes no difference, so an evaluation's records are known beforehand. One camera,
/// "front", that shows the step. kHangs: a class of its own for tests whose threads are left behind in on_step.
template <bool kKnowsSuccess, bool kHangs = false>
class LotteryEnv final : public Env {
 public:
  static constexpr const char* kId = kHangs          ? "hanging-lottery-test-v1"
                                     : kKnowsSuccess ? "lottery-test-v1"
                                                     : "blind-lottery-test-v1";
  /// Called in every step with the number of steps so far; to throw or to wait in. Set before environments run.
  static std::function<void(std::uint64_t seed, std::int64_t step)>& on_step() {
    static std::function<void(std::uint64_t, std::int64_t)> hook;
    return hook;
  }
  static EnvSpec make_spec() {
    return {.id = kId,
            .observation = {{.name = "state", .shape = {3}}},
            .action = {.choices = 2, .size = 1, .low = {}, .high = {}},
            .info = {},
            .has_success = kKnowsSuccess,
            .max_steps = 50,
            .control_hz = 10,
            .cameras = {"front"}};
  }
  static void add() { register_env({kId, "an environment of tests", make_simple_env_factory<LotteryEnv>}); }
  static std::int64_t length_of(std::uint64_t seed) { return 1 + static_cast<std::int64_t>(seed % 7); }
  static bool succeeds(std::uint64_t seed) { return kKnowsSuccess && (seed >> 8) % 2 == 1; }
  static double return_of(std::uint64_t seed) {
    return static_cast<double>(length_of(seed)) * static_cast<double>(seed % 1024);
  }

  explicit LotteryEnv(EnvSpec spec = make_spec()) : spec_(std::move(spec)) {}
  const EnvSpec& spec() const noexcept override { return spec_; }
  Result<void> reset(std::uint64_t seed, StepSlot out) override {
    seed_ = seed;
    step_ = 0;
    observe_into(out);
    return {};
  }
  Result<void> step(std::span<const float>, StepSlot out) override {
    ++step_;
    if (on_step()) on_step()(seed_, step_);
    *out.reward = static_cast<double>(seed_ % 1024);
    *out.terminated = step_ == length_of(seed_);
    if (out.success != nullptr) *out.success = *out.terminated && succeeds(seed_);
    observe_into(out);
    return {};
  }
  Result<void> render(const std::string& camera, RenderTarget out) override {
    if (camera != "front") return Error{Errc::not_found, "no camera '" + camera + "'"};
    std::fill(out.rgb.begin(), out.rgb.end(), static_cast<std::uint8_t>(30 * step_));
    return {};
  }

 private:
  void observe_into(const StepSlot& out) const {
    const auto state = out.field<float>(0, 3);
    for (std::size_t i = 0; i < 3; ++i) state[i] = static_cast<float>(step_) + 0.1F * static_cast<float>(i);
  }
  EnvSpec spec_;
  std::uint64_t seed_ = 0;
  std::int64_t step_ = 0;
};

}  // namespace troupe::testing
