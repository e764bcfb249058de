#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "env/env_options.h"

namespace troupe::app {

/// "max_episode_steps=50", "profile=pixel", "sparse=true", as a job has them in env and env.options; "env." and
/// "env.options." in front are left out. Errors: invalid_argument.
Result<EnvOptions> env_options_of(const std::vector<std::string>& words);

}  // namespace troupe::app
