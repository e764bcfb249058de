#include "placement/capacity.h"

#include <fmt/format.h>

#include <algorithm>

#include "placement/format.h"
#include "placement/roles.h"
#include "placement/seats.h"

namespace troupe::placement {

namespace {

// "2 learners x 3.1 GiB + 2 decoders x 0.3 GiB": what fills a node.
std::string describe_memory(const Plan& plan, std::int64_t node) {
  std::string text;
  std::string role;
  for (const PlannedActor& first : plan.actors) {  // sorted by role
    if (first.role == role) continue;
    role = first.role;
    std::int64_t count = 0, bytes = 0;
    for (const PlannedActor& actor : plan.actors) {
      if (actor.role != role || actor.node != node) continue;
      ++count;
      bytes = actor.memory_bytes;
    }
    if (count == 0) continue;
    text += fmt::format("{}{} {}{} x {}", text.empty() ? "" : " + ", count, role, count == 1 ? "" : "s",
                        format_bytes(bytes));
  }
  return text;
}

std::int64_t device_bytes_of(const Plan& plan, const PlannedActor& actor) {
  return actor.role == RoleKind::learner ? plan.learner_memory.engine_bytes() : actor.device_bytes;
}

/// "learner/0 4.0 GiB + rollout/0 33.1 GiB": who holds what of a device.
std::string describe_device(const Plan& plan, std::int64_t node, std::int64_t device) {
  std::string text;
  for (const PlannedActor& actor : plan.actors) {
    if (actor.node != node || std::ranges::find(actor.devices, device) == actor.devices.end()) continue;
    const std::int64_t bytes = device_bytes_of(plan, actor);
    if (bytes > 0) text += fmt::format("{}{} {}", text.empty() ? "" : " + ", actor.name, format_bytes(bytes));
  }
  return text;
}

std::optional<MemoryProblem> device_problem(const Plan& plan) {
  for (const PlannedActor& actor : plan.actors) {
    for (const std::int64_t d : actor.devices) {
      const std::int64_t need = device_load(plan, actor.node, d);
      const std::int64_t available =
          plan.nodes[static_cast<std::size_t>(actor.node)].devices[static_cast<std::size_t>(d)].memory_bytes;
      if (need <= available) continue;
      const bool is_alone = need == plan.learner_memory.engine_bytes();
      return MemoryProblem{
          is_alone ? fmt::format("learner needs {} per GPU, {} available", format_bytes(need), format_bytes(available))
                   : fmt::format("device {} of node {} needs {} ({}), {} available", d, actor.node, format_bytes(need),
                                 describe_device(plan, actor.node, d), format_bytes(available)),
          need, available};
    }
  }
  return std::nullopt;
}

}  // namespace

std::vector<NodeLoad> node_loads(const Plan& plan) {
  std::vector<NodeLoad> loads(plan.nodes.size());
  for (const PlannedActor& actor : plan.actors) {
    NodeLoad& load = loads[static_cast<std::size_t>(actor.node)];
    load.cpus += actor.cpus;
    load.memory_bytes += actor.memory_bytes;
  }
  return loads;
}

std::int64_t device_load(const Plan& plan, std::int64_t node, std::int64_t device) {
  std::int64_t bytes = 0;
  for (const PlannedActor& actor : plan.actors) {
    if (actor.node == node && std::ranges::find(actor.devices, device) != actor.devices.end())
      bytes += device_bytes_of(plan, actor);
  }
  return bytes;
}

std::int64_t usable_memory(const NodeSnapshot& node) { return node.memory_bytes - node.memory_bytes / 20; }

std::optional<MemoryProblem> find_memory_problem(const Plan& plan) {
  if (auto problem = device_problem(plan)) return problem;
  const auto loads = node_loads(plan);
  for (std::size_t n = 0; n < loads.size(); ++n) {
    const std::int64_t available = usable_memory(plan.nodes[n]);
    if (loads[n].memory_bytes <= available) continue;
    return MemoryProblem{
        fmt::format("node {} ({}) needs {} of memory ({}), {} available ({} less 5 %)", n, plan.nodes[n].name,
                    format_bytes(loads[n].memory_bytes), describe_memory(plan, static_cast<std::int64_t>(n)),
                    format_bytes(available), format_bytes(plan.nodes[n].memory_bytes)),
        loads[n].memory_bytes, available};
  }
  return std::nullopt;
}

std::int64_t peak_need(const Plan& plan) {
  std::int64_t peak = 0;
  for (const PlannedActor& actor : plan.actors) {
    for (const std::int64_t d : actor.devices) peak = std::max(peak, device_load(plan, actor.node, d));
  }
  if (peak > 0) return peak;
  for (const NodeLoad& load : node_loads(plan)) peak = std::max(peak, load.memory_bytes);
  return peak;
}

std::vector<std::string> cpu_problems(const Plan& plan) {
  std::vector<std::string> problems;
  const auto loads = node_loads(plan);
  for (std::size_t n = 0; n < loads.size(); ++n) {
    const NodeSnapshot& node = plan.nodes[n];
    if (node.devices.empty() || node.cpus < kSharedCores || loads[n].cpus <= static_cast<double>(node.cpus)) continue;
    std::int64_t feeders = 0;
    std::string role;
    for (const PlannedActor& a : plan.actors) {
      if (!is_elastic(a.role) || a.node != static_cast<std::int64_t>(n)) continue;
      role = a.role;
      ++feeders;
    }
    const auto excess = static_cast<std::int64_t>(loads[n].cpus - static_cast<double>(node.cpus) + 0.999);
    const std::string hint =
        feeders > excess ? fmt::format("Nearest: {} {}s on this node instead of {}", feeders - excess, role, feeders)
                         : std::string("Move actors to another node");
    problems.push_back(fmt::format("node {} ({}) has {} cpus; its actors need {}. {}", n, node.name, node.cpus,
                                   format_cpus(loads[n].cpus), hint));
  }
  return problems;
}

std::vector<std::string> cpu_warnings(const Plan& plan) {
  std::vector<std::string> warnings;
  const auto loads = node_loads(plan);
  for (std::size_t n = 0; n < loads.size(); ++n) {
    const NodeSnapshot& node = plan.nodes[n];
    if (loads[n].cpus <= static_cast<double>(node.cpus)) continue;
    warnings.push_back(fmt::format("cpus: node {} ({}) has {} cpus and its actors would use {}; they will take turns",
                                   n, node.name, node.cpus, format_cpus(loads[n].cpus)));
  }
  return warnings;
}

}  // namespace troupe::placement
