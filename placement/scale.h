#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "placement/planner.h"

namespace troupe::placement {

/// Planned actors of a role.
std::int64_t pool_size(const Plan& plan, const std::string& role);

/// The node with the most free cores that has the memory for an actor like `like` beside what `plan` places there; a
/// node without memory offers nothing. Nothing: no node has room.
std::optional<std::int64_t> node_with_room(const Plan& plan, const PlannedActor& like);

/// The plan with `target` actors in an elastic pool: one of elastic_roles(job). Other actors keep their places and
/// sizes.
///
/// Growing adds actors, each on the node with the most free cores that has the memory (ties: lower rank); a node with
/// devices is not given more actors than cores, a node without may be. Names take the lowest free process ranks, so a
/// name may return after its actor was removed; incarnations tell them apart. Nodes that joined since are used too:
/// `cluster` lists the plan's nodes first. Shrinking removes, one at a time, the actor with the highest process rank
/// on the most loaded node (cores used over cores; ties: higher node rank). The revision grows by one unless nothing
/// changes.
/// Errors: Infeasible for an unknown pool (with the nearest name), one that is not elastic, a target outside
/// `cluster.elastic.POOL` (defaults of ElasticConfig when absent), lost nodes, or no node with room.
std::variant<Plan, Infeasible> scale_pool(const Plan& plan, const ClusterSnapshot& cluster, const JobConfig& job,
                                          const std::string& pool, std::int64_t target);

}  // namespace troupe::placement
