#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "placement/plan.h"

namespace troupe::placement {

/// What the actors of a plan take from one node.
struct NodeLoad {
  double cpus = 0;
  std::int64_t memory_bytes = 0;
};

/// Loads by node rank.
std::vector<NodeLoad> node_loads(const Plan& plan);

/// Host memory that actors may use: 95 %.
std::int64_t usable_memory(const NodeSnapshot& node);

/// What all actors that sit on a device hold there.
std::int64_t device_load(const Plan& plan, std::int64_t node, std::int64_t device);

/// What does not fit, in numbers.
struct MemoryProblem {
  std::string text;            ///< without a full stop
  std::int64_t need = 0;       ///< bytes
  std::int64_t available = 0;  ///< bytes
};

/// The first device or node whose memory the plan exceeds.
std::optional<MemoryProblem> find_memory_problem(const Plan& plan);

/// Bytes needed at the tightest place: on the fullest device where actors have some, else on the fullest node.
std::int64_t peak_need(const Plan& plan);

/// Nodes of kSharedCores and more with devices whose cores are exceeded, one sentence each.
std::vector<std::string> cpu_problems(const Plan& plan);

/// Nodes whose cores are shared by more actors than there are, one sentence each; starts with "cpus: ".
std::vector<std::string> cpu_warnings(const Plan& plan);

}  // namespace troupe::placement
