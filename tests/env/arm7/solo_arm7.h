#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "env/arm7/arm7_env.h"
#include "tests/env/solo_env.h"

namespace troupe::testing {

/// One arm with memory of its own; its concrete class is at hand.
class SoloArm7 : public SoloEnv {
 public:
  explicit SoloArm7(const std::string& task, const EnvOptions& options = {})
      : SoloEnv(make_arm7_factory("arm7/" + task + "-v1", options).value()->make().value()) {}

  /// In the episode of a seed.
  SoloArm7(const std::string& task, std::uint64_t seed, const EnvOptions& options = {}) : SoloArm7(task, options) {
    reset(seed).value();
  }
  Arm7Env& arm() { return static_cast<Arm7Env&>(env()); }
  std::vector<double> positions() { return {arm().data().qpos, arm().data().qpos + arm().arm().model->nq}; }
  std::vector<float> still() const { return std::vector<float>(static_cast<std::size_t>(spec().action.size), 0); }
  /// What observe() writes, field by field.
  std::vector<std::vector<std::byte>> observed() {
    std::vector<std::vector<std::byte>> memory;
    for (const EnvField& field : spec().observation) memory.emplace_back(static_cast<std::size_t>(field.bytes()));
    std::vector<std::byte*> pointers;
    for (auto& field : memory) pointers.push_back(field.data());
    env().observe({.observation = pointers, .info = {}}).value();
    return memory;
  }
  /// The floats of a field.
  std::vector<float> floats(std::size_t field) const {
    std::vector<float> values;
    for (std::size_t i = 0; i < static_cast<std::size_t>(spec().observation[field].numel()); ++i) {
      values.push_back(static_cast<float>(element(field, i)));
    }
    return values;
  }
  std::size_t field_of(const std::string& name) const {
    const auto& fields = spec().observation;
    const auto found = std::find_if(fields.begin(), fields.end(), [&](const EnvField& f) { return f.name == name; });
    return static_cast<std::size_t>(found - fields.begin());
  }
};

}  // namespace troupe::testing
