#pragma once

#include <string>

#include "base/result.h"
#include "env/env_spec.h"
#include "workers/bridge/worker_command.h"

namespace troupe::workers {

/// What the environment `id` observes and takes, as Python says that makes one; `options` are its keyword arguments as
/// JSON. Starts the command and waits for its end, 3 minutes at most. Errors: invalid_argument with the worker's own
/// sentence (a package that is missing, an unknown id), not_found (no interpreter), deadline_exceeded, internal.
Result<EnvSpec> describe_in_python(const WorkerCommand& command, const std::string& id, const std::string& options);

}  // namespace troupe::workers
