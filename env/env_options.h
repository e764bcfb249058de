#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/seconds.h"
#include "configs/bridge_config.h"
#include "env/env_spec.h"

namespace troupe::env {

/// Settings as a job writes them, by names that their reader documents.
using NamedOptions = std::map<std::string, std::string>;

/// What a job may say about an environment beside its id.
struct EnvOptions {
  /// Empty: the environment's first.
  std::string profile = {};
  /// Unknown ones are errors.
  NamedOptions options = {};
  /// 0: the environment's own.
  std::int64_t max_steps = 0;
  /// The environment's description, if a file already holds it: the factory then need not start the simulator for it.
  std::optional<EnvSpec> known = {};
  /// Longest time of one policy step (env.step_timeout_s).
  Seconds step_timeout{30};
  /// Of environments in other processes.
  configs::BridgeConfig bridge = {};
};

/// Refuses a profile or an option that environment `id` does not have. `profiles` and `names` are those it has.
/// Errors: invalid_argument, naming the nearest and all that there are.
Result<void> check_env_options(std::string_view id, const EnvOptions& options,
                               std::initializer_list<std::string_view> profiles = {},
                               std::initializer_list<std::string_view> names = {});

/// Whether an option of an environment changes what is observed and not the task (docs/env.md#what-there-is): policies
/// that play the same task may differ in it.
bool changes_observation(std::string_view option);

/// Refuses an option that is none of `names`; `whose` begins the error. Errors: as above.
Result<void> check_options(std::string_view whose, const NamedOptions& options,
                           std::initializer_list<std::string_view> names);

}  // namespace troupe::env
