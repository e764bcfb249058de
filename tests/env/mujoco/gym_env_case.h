#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "env/mujoco/gym_env.h"
#include "env/registry/registry.h"
#include "tests/support/visible.h"

namespace troupe::testing {

/// One MuJoCo task of the registry with f64 observations and somewhere to write its steps.
class GymEnvCase {
 public:
  /// Fails the test and stays empty where the id is unknown.
  explicit GymEnvCase(const std::string& id) {
    auto made = make_env_factory(id, {.profile = "", .options = {{"obs_dtype", "f64"}}, .max_steps = 0});
    if (!made) {
      ADD_FAILURE() << made.error().to_string();
      return;
    }
    factory_ = std::move(made).value();
    auto env = factory_->make();
    if (!env) {
      ADD_FAILURE() << env.error().to_string();
      return;
    }
    env_ = std::move(env).value();
    gym_ = dynamic_cast<GymEnv*>(env_.get());
    EXPECT_NE(gym_, nullptr) << id << " is no MuJoCo task";
    observation_.resize(static_cast<std::size_t>(env_->spec().observation[0].numel()));
    info_.resize(env_->spec().info.size());
  }

  explicit operator bool() const { return gym_ != nullptr; }
  GymEnv* operator->() { return gym_; }
  GymEnv& operator*() { return *gym_; }

  StepSlot slot() {
    fields_[0] = reinterpret_cast<std::byte*>(observation_.data());
    return {.observation = fields_, .reward = &reward, .terminated = &terminated, .success = nullptr, .info = info_};
  }
  void step(std::span<const float> action) { gym_->step(action, slot()).value(); }
  const std::vector<double>& observation() const { return observation_; }
  /// The value of that name; fails the test where there is none.
  double info(const std::string& name) const {
    const auto& names = gym_->spec().info;
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (names[i] == name) return info_[i];
    }
    ADD_FAILURE() << gym_->spec().id << " reports no '" << name << "'";
    return 0;
  }

  double reward = 0;
  bool terminated = false;

 private:
  std::shared_ptr<const EnvFactory> factory_;
  std::unique_ptr<Env> env_;
  GymEnv* gym_ = nullptr;
  std::vector<double> observation_, info_;
  std::array<std::byte*, 1> fields_{};
};

}  // namespace troupe::testing
