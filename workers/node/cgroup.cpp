#include "workers/node/cgroup.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>

namespace troupe::workers {

namespace {

namespace fs = std::filesystem;

/// Version 1 says "no limit" with the largest multiple of a page; no machine has a quarter of that.
constexpr std::int64_t kNoLimit = std::int64_t{1} << 61;

std::string first_line(const fs::path& path) {
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  return line;
}

/// "200000 100000" is two cpus, "max 100000" and "-1 100000" none said.
std::optional<double> parse_cpus(const std::string& line) {
  std::istringstream in(line);
  double quota = 0, period = 0;
  if (!(in >> quota >> period) || quota <= 0 || period <= 0) return std::nullopt;
  return quota / period;
}

std::optional<std::int64_t> parse_bytes(const std::string& line) {
  std::istringstream in(line);
  std::int64_t bytes = 0;
  if (!(in >> bytes) || bytes <= 0 || bytes >= kNoLimit) return std::nullopt;
  return bytes;
}

/// The number after `key` in a file of "key number" lines; 0: no such line.
std::int64_t number_after(const fs::path& file, const std::string& key) {
  std::ifstream in(file);
  std::string name;
  for (std::int64_t number = 0; in >> name >> number;) {
    if (name == key) return number;
  }
  return 0;
}

/// Names of one version's files.
struct MemoryFiles {
  const char *limit, *used, *droppable;
};
constexpr MemoryFiles kUnified{"memory.max", "memory.current", "inactive_file"};
constexpr MemoryFiles kVersion1{"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"};

/// The folders of a group and of all groups around it, innermost first: a limit on a parent binds its children.
void for_each_level(const fs::path& mount, const std::string& group,
                    const std::function<void(const fs::path& folder)>& visit) {
  for (fs::path at = group;; at = at.parent_path()) {
    visit(mount / at.relative_path());
    if (!at.has_relative_path()) return;
  }
}

void tighten_memory(CgroupLimits& limits, const fs::path& folder, const MemoryFiles& files) {
  const auto limit = parse_bytes(first_line(folder / files.limit));
  if (!limit || (limits.memory_bytes && *limits.memory_bytes <= *limit)) return;
  limits.memory_bytes = limit;
  const auto used = parse_bytes(first_line(folder / files.used)).value_or(0);
  limits.memory_used_bytes = std::max<std::int64_t>(0, used - number_after(folder / "memory.stat", files.droppable));
}

void tighten_cpus(CgroupLimits& limits, const std::string& quota_and_period) {
  const auto cpus = parse_cpus(quota_and_period);
  if (cpus && (!limits.cpus || *cpus < *limits.cpus)) limits.cpus = cpus;
}

/// Where a version 1 controller is mounted: under its own name, or a link of that name.
fs::path mount_of(const std::string& root, const char* controller) { return fs::path(root) / controller; }

}  // namespace

CgroupPaths read_cgroup_paths(const std::string& file) {
  CgroupPaths paths;
  std::ifstream in(file);
  // hierarchy:controller,controller:/path
  for (std::string line; std::getline(in, line);) {
    const auto first = line.find(':'), second = line.find(':', first == std::string::npos ? first : first + 1);
    if (second == std::string::npos) continue;
    const std::string path = line.substr(second + 1);
    if (line.starts_with("0::")) paths.unified = path;
    std::istringstream controllers(line.substr(first + 1, second - first - 1));
    for (std::string controller; std::getline(controllers, controller, ',');) {
      if (controller == "memory") paths.memory = path;
      if (controller == "cpu") paths.cpu = path;
    }
  }
  return paths;
}

CgroupPaths own_cgroups() { return read_cgroup_paths("/proc/self/cgroup"); }

CgroupLimits read_cgroup_limits(const std::string& root, const CgroupPaths& groups) {
  CgroupLimits limits;
  for_each_level(root, groups.unified, [&](const fs::path& folder) {
    tighten_cpus(limits, first_line(folder / "cpu.max"));
    tighten_memory(limits, folder, kUnified);
  });
  if (!groups.cpu.empty()) {
    for_each_level(mount_of(root, "cpu"), groups.cpu, [&](const fs::path& folder) {
      tighten_cpus(limits, first_line(folder / "cpu.cfs_quota_us") + " " + first_line(folder / "cpu.cfs_period_us"));
    });
  }
  if (!groups.memory.empty()) {
    for_each_level(mount_of(root, "memory"), groups.memory,
                   [&](const fs::path& folder) { tighten_memory(limits, folder, kVersion1); });
  }
  return limits;
}

std::uint64_t read_oom_kills(const std::string& root, const CgroupPaths& groups) {
  const bool is_v1 = !groups.memory.empty();
  const fs::path mount = is_v1 ? mount_of(root, "memory") : fs::path(root);
  std::uint64_t kills = 0;
  bool is_found = false;
  // the innermost level that is visible here: in a container the mount point may be the group itself
  for_each_level(mount, is_v1 ? groups.memory : groups.unified, [&](const fs::path& folder) {
    const fs::path file = folder / (is_v1 ? "memory.oom_control" : "memory.events");
    std::error_code unreadable;  // a level that cannot be seen is passed over
    if (is_found || !fs::exists(file, unreadable)) return;
    is_found = true;
    kills = static_cast<std::uint64_t>(std::max<std::int64_t>(0, number_after(file, "oom_kill")));
  });
  return kills;
}

}  // namespace troupe::workers
