#pragma once

#include <spawn.h>
#include <sys/types.h>

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/file_descriptor.h"
#include "base/result.h"

namespace troupe::base {

/// What posix_spawn is told of a child: a process group of its own, no signal blocked or ignored, stdin from /dev/null,
/// and no descriptor above 2. The caller adds the child's stdout and stderr to `actions`.
struct SpawnSettings {
  SpawnSettings();
  ~SpawnSettings();
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;

  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
};

/// A child that runs, or has ended and was not waited for.
struct SpawnedProcess {
  pid_t pid = 0;
  /// Readable for poll() when the child has ended.
  FileDescriptor pidfd;
};

/// Starts the program words[0], which is looked for in PATH, with `environment` ("NAME=value" lines). Call from a
/// thread that outlives the child. Errors: not_found (no such program), resource_exhausted, unavailable; the message is
/// the system's. No child is left behind an error.
Result<SpawnedProcess> spawn_process(std::vector<std::string> words, std::vector<std::string> environment,
                                     SpawnSettings& settings);

/// "NAME=value" lines: the variables of this process that `is_inherited` takes, then `extra`, which replace them.
std::vector<std::string> child_environment(const std::map<std::string, std::string>& extra,
                                           const std::function<bool(std::string_view)>& is_inherited);

}  // namespace troupe::base
