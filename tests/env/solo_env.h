#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "env/registry/registry.h"
#include "tests/support/visible.h"

namespace troupe::testing {

/// The factory of an id; aborts the test program when there is none.
inline std::shared_ptr<const EnvFactory> factory_of(const std::string& id, const EnvOptions& options = {}) {
  return make_env_factory(id, options).value();
}

/// The name of a test whose parameter is an id.
inline std::string id_name(const ::testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::replace_if(
      name.begin(), name.end(), [](unsigned char c) { return !std::isalnum(c); }, '_');
  return name;
}

/// `count` actions [count, A] that an agent without a plan takes: uniform within the bounds (within [-1, 1] where
/// there are none).
inline std::vector<float> random_actions(const ActionSpace& space, std::int64_t count, std::uint64_t seed,
                                         std::uint64_t index = 0) {
  CounterRng rng(seed, 4, index);
  std::vector<float> actions;
  for (std::int64_t i = 0; i < count; ++i) {
    if (space.is_discrete()) {
      actions.push_back(static_cast<float>(rng.below(static_cast<std::uint32_t>(space.choices))));
      continue;
    }
    for (std::size_t a = 0; a < static_cast<std::size_t>(space.size); ++a) {
      const double low = std::isfinite(space.low[a]) ? space.low[a] : -1,
                   high = std::isfinite(space.high[a]) ? space.high[a] : 1;
      actions.push_back(static_cast<float>(rng.uniform(low, high)));
    }
  }
  return actions;
}

/// Those of one environment, [P, count, A].
inline std::vector<float> random_actions(const EnvSpec& spec, std::int64_t count, std::uint64_t seed,
                                         std::uint64_t index = 0) {
  return random_actions(spec.action, spec.agents * count, seed, index);
}

/// Memory of its own for what one environment writes.
class SlotMemory {
 public:
  explicit SlotMemory(const EnvSpec& spec)
      : rewards_(static_cast<std::size_t>(spec.agents)), info_(spec.info.size()), alive_(rewards_.size()) {
    for (const EnvField& field : spec.observation)
      fields_.emplace_back(static_cast<std::size_t>(spec.agents * field.bytes()));
    for (auto& field : fields_) pointers_.push_back(field.data());
  }

  StepSlot for_reset() {
    std::fill(rewards_.begin(), rewards_.end(), 0.0);
    std::fill(info_.begin(), info_.end(), 0.0);
    std::fill(alive_.begin(), alive_.end(), std::uint8_t{1});
    return for_step();
  }
  StepSlot for_step() {
    terminated_ = success_ = false;
    return {.observation = pointers_,
            .reward = rewards_.data(),
            .terminated = &terminated_,
            .success = &success_,
            .info = info_,
            .alive = alive_};
  }
  const std::vector<double>& rewards() const { return rewards_; }
  bool terminated() const { return terminated_; }
  bool success() const { return success_; }
  const std::vector<std::vector<std::byte>>& fields() const { return fields_; }
  /// All that a step wrote, and the hash of the state that it left, for comparison.
  std::vector<std::byte> bits(std::uint64_t hash) const {
    std::vector<std::byte> all;
    const auto append = [&all](const void* data, std::size_t bytes) {
      const auto* begin = static_cast<const std::byte*>(data);
      all.insert(all.end(), begin, begin + bytes);
    };
    for (const auto& field : fields_) append(field.data(), field.size());
    append(rewards_.data(), rewards_.size() * sizeof(double));
    append(&terminated_, sizeof terminated_);
    append(&success_, sizeof success_);
    append(info_.data(), info_.size() * sizeof(double));
    append(alive_.data(), alive_.size());
    append(&hash, sizeof hash);
    return all;
  }

 private:
  std::vector<std::vector<std::byte>> fields_;
  std::vector<std::byte*> pointers_;
  std::vector<double> rewards_;
  bool terminated_ = false, success_ = false;
  std::vector<double> info_;
  std::vector<std::uint8_t> alive_;
};

/// One environment with memory of its own to write to, without a pool.
class SoloEnv {
 public:
  explicit SoloEnv(std::unique_ptr<Env> env) : env_(std::move(env)), memory_(env_->spec()) {}
  explicit SoloEnv(std::unique_ptr<BatchEnv> batch) : SoloEnv(as_env(std::move(batch))) {}
  explicit SoloEnv(const std::string& id) : SoloEnv(factory_of(id)->make().value()) {}

  Result<void> reset(std::uint64_t seed) { return env_->reset(seed, memory_.for_reset()); }
  Result<void> step(std::span<const float> action) { return env_->step(action, memory_.for_step()); }

  Env& env() { return *env_; }
  const EnvSpec& spec() const { return env_->spec(); }
  /// Of each agent, and of the only one.
  const std::vector<double>& rewards() const { return memory_.rewards(); }
  double reward() const { return memory_.rewards().at(0); }
  bool terminated() const { return memory_.terminated(); }
  bool success() const { return memory_.success(); }
  const std::vector<std::vector<std::byte>>& fields() const { return memory_.fields(); }
  /// All that a step wrote, for comparison.
  std::vector<std::byte> bits() const { return memory_.bits(env_->state_hash()); }
  /// Element `i` of a field as a double.
  double element(std::size_t field, std::size_t i) const {
    const std::byte* at =
        fields()[field].data() + i * static_cast<std::size_t>(env_dtype_bytes(spec().observation[field].dtype));
    switch (spec().observation[field].dtype) {
      case EnvDType::u8:
        return static_cast<double>(std::to_integer<int>(*at));
      case EnvDType::f32:
        return static_cast<double>(load<float>(at));
      case EnvDType::f64:
        return load<double>(at);
    }
    return 0;
  }

 private:
  template <class T>
  static T load(const std::byte* at) {
    T value;
    std::memcpy(&value, at, sizeof value);
    return value;
  }
  std::unique_ptr<Env> env_;
  SlotMemory memory_;
};

}  // namespace troupe::testing
