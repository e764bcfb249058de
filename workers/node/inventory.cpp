#include "workers/node/inventory.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <limits>
#include <memory>

#include "base/log.h"
#include "device/nvml.h"
#include "placement/known_devices.h"
#include "workers/node/cgroup.h"

namespace troupe::workers {

namespace {

constexpr const char* kCgroupRoot = "/sys/fs/cgroup";

/// Processors this process may run on; machines may have more than a cpu_set_t holds.
std::int64_t affinity_cpus() {
  for (int cpus = CPU_SETSIZE; cpus <= (1 << 16); cpus *= 2) {
    struct Free {
      void operator()(cpu_set_t* set) const { CPU_FREE(set); }
    };
    const std::unique_ptr<cpu_set_t, Free> set(CPU_ALLOC(static_cast<std::size_t>(cpus)));
    const std::size_t bytes = CPU_ALLOC_SIZE(static_cast<std::size_t>(cpus));
    if (set && ::sched_getaffinity(0, bytes, set.get()) == 0) return CPU_COUNT_S(bytes, set.get());
  }
  return std::max<std::int64_t>(1, ::sysconf(_SC_NPROCESSORS_ONLN));
}

/// A line of /proc/meminfo in bytes.
std::int64_t meminfo(const std::string& wanted) {
  std::ifstream in("/proc/meminfo");
  std::string name, unit;
  for (std::int64_t value = 0; in >> name >> value; std::getline(in, unit)) {
    if (name == wanted) return value * 1024;
  }
  return 0;
}

/// As plans name it, where it is known.
std::string planned_model(const std::string& model) {
  const auto known = find_known_device(model);
  return known ? std::string(known->name.substr(0, known->name.find('-'))) : model;
}

std::vector<DeviceSnapshot> read_devices() {
  const auto facts = device::read_nvml();
  if (!facts) {
    log::warn("GPUs of this machine are not used: {}", facts.error().message());
    return {};
  }
  std::vector<DeviceSnapshot> devices;
  for (const device::NvmlDevice& d : facts->devices)
    devices.push_back({.model = planned_model(d.model), .memory_bytes = d.memory_bytes});
  return devices;
}

}  // namespace

NodeFacts read_inventory(const std::string& node_name) {
  NodeFacts facts;
  const CgroupLimits limits = read_cgroup_limits(kCgroupRoot, own_cgroups());
  facts.snapshot.name = node_name;
  facts.snapshot.cpus = affinity_cpus();
  if (limits.cpus)
    facts.snapshot.cpus = std::clamp<std::int64_t>(static_cast<std::int64_t>(*limits.cpus), 1, facts.snapshot.cpus);
  facts.snapshot.memory_bytes = meminfo("MemTotal:");
  if (limits.memory_bytes) facts.snapshot.memory_bytes = std::min(facts.snapshot.memory_bytes, *limits.memory_bytes);
  // a machine keeps its devices, and a driver that sleeps takes seconds to name them
  static const std::vector<DeviceSnapshot> devices = read_devices();
  facts.snapshot.devices = devices;
  char host[256] = {};
  if (::gethostname(host, sizeof host - 1) == 0) facts.host = host;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> facts.boot_id;
  return facts;
}

ClusterSnapshot own_cluster() { return {.nodes = {read_inventory("local").snapshot}}; }

std::int64_t free_memory_bytes() {
  std::int64_t free = meminfo("MemAvailable:");
  const CgroupLimits limits = read_cgroup_limits(kCgroupRoot, own_cgroups());
  if (limits.memory_bytes)
    free = std::min(free, std::max<std::int64_t>(0, *limits.memory_bytes - limits.memory_used_bytes));
  return free;
}

}  // namespace troupe::workers
