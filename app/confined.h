#pragma once

#include <functional>
#include <string>

#include "actors/role_factory.h"
#include "workers/node/sandbox.h"

namespace troupe::app {

// Processes that read strangers' bytes: video, tables and pictures of datasets (docs/processes.md#confined-processes).

/// Runs `command` in a child that is confined by `rules`, and returns its exit code. SIGTERM, SIGHUP and a SIGINT that
/// another process sent are passed on. A child that a signal ends is said on stderr, with `subject`, what it read, and
/// counts as failed. Call before this process has threads; what does not fork runs nothing and counts as failed.
int run_confined(const std::string& subject, const workers::SandboxRules& rules, const std::function<int()>& command);

/// Lets a dataset be read, wherever links in it lead, and its index be written to the user's cache.
void allow_dataset(workers::SandboxRules& rules, const std::string& path_or_repo_id);

/// Lets every file and folder be read that the sections `data` and `model` of a configuration (text of YAML) name, and
/// Hugging Face's caches.
void allow_named(workers::SandboxRules& rules, const std::string& yaml);

/// The rules of a decoder's or encoder's process.
workers::SandboxRules rules_of_host(const actors::RoleContext& context);

}  // namespace troupe::app
