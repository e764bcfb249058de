#include "workers/node/cgroup.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>

namespace troupe::workers {

namespace {

std::string first_line(const std::filesystem::path& path) {
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  return line;
}

/// "200000 100000" is two cpus, "max 100000" none said.
std::optional<double> parse_cpu_max(const std::string& line) {
  std::istringstream in(line);
  double quota = 0, period = 0;
  if (!(in >> quota >> period) || quota <= 0 || period <= 0) return std::nullopt;
  return quota / period;
}

std::optional<std::int64_t> parse_bytes(const std::string& line) {
  std::istringstream in(line);
  std::int64_t bytes = 0;
  if (!(in >> bytes) || bytes <= 0) return std::nullopt;
  return bytes;
}

template <class T>
void tighten(std::optional<T>& limit, const std::optional<T>& other) {
  if (other && (!limit || *other < *limit)) limit = other;
}

}  // namespace

std::string own_cgroup() {
  std::ifstream in("/proc/self/cgroup");
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("0::/")) return line.substr(3);
  }
  return "/";
}

CgroupLimits read_cgroup_limits(const std::string& root, const std::string& group) {
  namespace fs = std::filesystem;
  CgroupLimits limits;
  // a limit on a parent binds its children
  for (fs::path at = group;; at = at.parent_path()) {
    const fs::path folder = fs::path(root) / at.relative_path();
    tighten(limits.cpus, parse_cpu_max(first_line(folder / "cpu.max")));
    tighten(limits.memory_bytes, parse_bytes(first_line(folder / "memory.max")));
    if (!at.has_relative_path()) return limits;
  }
}

std::uint64_t read_oom_kills(const std::string& root, const std::string& group) {
  std::ifstream in(std::filesystem::path(root) / std::filesystem::path(group).relative_path() / "memory.events");
  std::string name;
  for (std::uint64_t count = 0; in >> name >> count;) {
    if (name == "oom_kill") return count;
  }
  return 0;
}

}  // namespace troupe::workers
