#pragma once

#include <string>

#include "base/result.h"

namespace troupe::env {

/// Text of a job's YAML file that trains a policy in the environment of this id, a comment before every guess. A recipe
/// that trains this very environment from random values gives the numbers; without one, the recipe of the nearest kind
/// by what the environment's EnvSpec says: discrete actions, a task that can succeed, or how many numbers are observed.
/// Errors: not_found, with the ids there are, nearest first.
Result<std::string> env_job_yaml(const std::string& env_id);

}  // namespace troupe::env
