#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/file_descriptor.h"
#include "base/result.h"
#include "workers/node/process.h"

namespace troupe::workers {

/// A child that runs, or has ended and was not waited for.
struct SpawnedChild {
  pid_t pid = 0;
  FileDescriptor pidfd;
  /// Size of its log before it started.
  std::int64_t log_begin = 0;
};

/// posix_spawn with the attributes that ProcessTable promises. Call from a thread that outlives the child.
Result<SpawnedChild> spawn_child(const ProcessSpec& spec);

/// "NAME=value" lines of a child: allow-listed variables of this process, then `spec.env`, then TROUPE_PARENT_PID.
std::vector<std::string> environment_of(const ProcessSpec& spec);

/// The last 4 KiB of the file from `begin` on, as UTF-8.
std::string read_tail(const std::string& file, std::int64_t begin);

/// How often the kernel's out-of-memory killer struck in this process's cgroup; 0 if that cannot be read.
std::uint64_t count_oom_kills();

}  // namespace troupe::workers
