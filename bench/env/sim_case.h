#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "env/env_factory.h"
#include "env/env_options.h"

namespace troupe::bench {

/// The registry's environment. Throws std::runtime_error with the registry's error.
std::shared_ptr<const EnvFactory> must_make(const std::string& id, const EnvOptions& options = {});

/// What both sides of the benchmark step: a task, how many environments on how many threads, and how many steps each
/// makes.
struct SimCase {
  std::string id = "HalfCheetah-v5";
  std::int64_t num_envs = 64;
  std::int64_t threads = 2;
  std::int64_t groups = 1;    ///< of the pool
  std::int64_t steps = 1000;  ///< control steps of each environment
};

/// Random actions in the task's bounds or among its choices, made before the clock starts; both sides take the same
/// ones in turn.
class ActionTable {
 public:
  ActionTable(const EnvSpec& spec, std::int64_t num_envs);
  /// The actions [num_envs, A] of a step; they come round again.
  std::span<const float> at(std::int64_t step) const;
  std::span<const float> at(std::int64_t step, std::int64_t env) const;

 private:
  static constexpr std::int64_t kSteps = 128;
  std::int64_t num_envs_, size_;
  std::vector<float> values_;
};

}  // namespace troupe::bench
