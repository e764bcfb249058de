#pragma once

#include <memory>
#include <string_view>

#include "base/result.h"
#include "env/env_factory.h"

namespace troupe::workers {

/// The factory of an environment in Python, by the family of its id (docs/bridge.md): gymnasium:, metaworld:,
/// pettingzoo:, python:, robosuite:. Asks Python once what it is, unless that is known. The first environment that it
/// makes starts the workers; they end with the factory and its environments. env.options are keyword arguments, but for
/// obs_dtype and success. No profiles. Errors: those of describe_in_python, worker_command and check_env_options.
Result<std::shared_ptr<const EnvFactory>> make_bridge_factory(std::string_view id, const EnvOptions& options);

/// Adds these families of ids to the table of environments (env/registry/registry.h), as register_env() does.
void register_bridge_envs();

}  // namespace troupe::workers
