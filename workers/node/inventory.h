#pragma once

#include <cstdint>
#include <string>

#include "placement/plan.h"

namespace troupe::workers {

/// What this machine offers to the process that asks.
struct NodeFacts {
  /// Name as given; cpus and memory (bytes) within affinity and cgroup limits; the GPUs that this process may use, in
  /// the order of their CUDA numbers (device/nvml.h), models with the names of placement/known_devices.h
  NodeSnapshot snapshot;
  /// Host name.
  std::string host;
  /// Equal in all processes of one machine until it is started again.
  std::string boot_id;
};

/// Reads the facts. cpus: the affinity mask, and at most the cgroup's quota, rounded down but at least 1. memory:
/// installed memory, and at most the cgroup's limit. GPUs are read once a process, which may take seconds where the
/// driver sleeps; a driver that fails is a warning in the log, and no devices. Otherwise cheap; values that cannot be
/// read are 0 or empty. Any thread.
NodeFacts read_inventory(const std::string& node_name);

/// This machine as the only node of a cluster, with the name "local" (docs/processes.md#inventory).
ClusterSnapshot own_cluster();

/// Memory that programs can still take, in bytes: MemAvailable, and at most what is left of the cgroup's limit.
std::int64_t free_memory_bytes();

}  // namespace troupe::workers
