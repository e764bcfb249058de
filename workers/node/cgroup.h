#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace troupe::workers {

/// Limits that cgroups (version 2) put on this process, the tightest of its group and the groups around it. Absent: no
/// limit.
struct CgroupLimits {
  /// Quota / period of cpu.max.
  std::optional<double> cpus;
  /// memory.max.
  std::optional<std::int64_t> memory_bytes;
};

/// Path of this process's group below the mount point, from /proc/self/cgroup; "/" if it has none.
std::string own_cgroup();

/// Reads the limits of `group` under the mount point `root`, usually /sys/fs/cgroup. Unreadable files count as no
/// limit.
CgroupLimits read_cgroup_limits(const std::string& root, const std::string& group);

/// Number of processes of `group` that the out-of-memory killer ended; 0 if that cannot be read.
std::uint64_t read_oom_kills(const std::string& root, const std::string& group);

}  // namespace troupe::workers
