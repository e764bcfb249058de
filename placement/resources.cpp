#include "placement/resources.h"

#include <fmt/format.h>

#include "placement/format.h"
#include "placement/placement_string.h"

namespace troupe::placement {

namespace {

void append_node(const ClusterSnapshot& cluster, std::int64_t rank, bool count_devices,
                 std::vector<Resource>& resources) {
  const auto devices = static_cast<std::int64_t>(cluster.nodes[static_cast<std::size_t>(rank)].devices.size());
  if (!count_devices || devices == 0) {
    resources.push_back({rank, -1});
    return;
  }
  for (std::int64_t d = 0; d < devices; ++d) resources.push_back({rank, d});
}

Result<const NodeGroupConfig*> find_group(const ClusterConfig& config, const std::string& label) {
  const NodeGroupConfig* found = nullptr;
  std::vector<std::string> known = {"cluster", "node"};
  for (const NodeGroupConfig& group : config.node_groups) {
    known.push_back(group.label);
    if (group.label != label) continue;
    if (found != nullptr)
      return Error{Errc::invalid_argument, fmt::format("cluster.node_groups has the label '{}' twice", label)};
    found = &group;
  }
  if (found == nullptr) {
    return Error{Errc::invalid_argument, fmt::format("node group '{}' does not exist; known groups: {}.{}", label,
                                                     join_names(known), did_you_mean(label, known))};
  }
  return found;
}

}  // namespace

Result<std::vector<Resource>> resources_of(const ClusterSnapshot& cluster, const ClusterConfig& config,
                                           const std::string& label) {
  const auto nodes = static_cast<std::int64_t>(cluster.nodes.size());
  std::vector<Resource> resources;
  if (label == "cluster" || label == "node") {
    for (std::int64_t rank = 0; rank < nodes; ++rank) append_node(cluster, rank, label == "cluster", resources);
    return resources;
  }
  TROUPE_ASSIGN(const NodeGroupConfig* group, find_group(config, label));
  const std::string key = fmt::format("cluster.node_groups.{}.node_ranks", label);
  TROUPE_ASSIGN(const std::vector<std::int64_t> ranks, parse_ranks(group->node_ranks, key));
  for (const std::int64_t rank : ranks) {
    if (rank >= nodes) {
      return Error{Errc::invalid_argument,
                   fmt::format("{} names node {}; the cluster has {} (0-{})", key, rank, nodes, nodes - 1)};
    }
    append_node(cluster, rank, !group->ignore_hardware, resources);
  }
  return resources;
}

}  // namespace troupe::placement
