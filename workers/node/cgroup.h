#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace troupe::workers {

/// The control groups of a process, as paths below the mount points of their hierarchies.
struct CgroupPaths {
  /// Version 2; "/" also where there is none.
  std::string unified = "/";
  /// Version 1, whose controllers are mounted one by one; empty: that controller is not.
  std::string memory = {};
  std::string cpu = {};
};

/// Limits that control groups (version 1 or 2) put on this process, the tightest of its group and the groups around it.
/// Absent: no limit.
struct CgroupLimits {
  /// Quota / period of cpu.max, or of cpu.cfs_quota_us and cpu.cfs_period_us.
  std::optional<double> cpus;
  /// memory.max, or memory.limit_in_bytes.
  std::optional<std::int64_t> memory_bytes;
  /// What that group and those in it hold now, without page cache that can be dropped.
  std::int64_t memory_used_bytes = 0;
};

/// Reads a file such as /proc/self/cgroup.
CgroupPaths read_cgroup_paths(const std::string& file);
CgroupPaths own_cgroups();

/// Reads the limits of `groups` under `root`, usually /sys/fs/cgroup. Unreadable files count as no limit: a container
/// often sees its own group as the mount point, whatever the path says.
CgroupLimits read_cgroup_limits(const std::string& root, const CgroupPaths& groups);

/// Number of processes of the group that the out-of-memory killer ended; 0 if that cannot be read.
std::uint64_t read_oom_kills(const std::string& root, const CgroupPaths& groups);

}  // namespace troupe::workers
