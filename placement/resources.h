#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "configs/cluster_config.h"
#include "placement/plan.h"

namespace troupe::placement {

/// One countable thing of a node group: a device, or a whole node.
struct Resource {
  std::int64_t node = 0;     ///< node rank
  std::int64_t device = -1;  ///< index on the node; -1: the node itself
};

/// Numbers the resources of a node group: nodes by rank, devices by index.
///     cluster   every device; a node without devices counts as one resource
///     node      every node
///     a label   the nodes in `node_ranks`, counted like `cluster`, or one each with `ignore_hardware`
/// Errors: invalid_argument for an unknown or repeated label, or a rank that the cluster does not have.
Result<std::vector<Resource>> resources_of(const ClusterSnapshot& cluster, const ClusterConfig& config,
                                           const std::string& label);

}  // namespace troupe::placement
