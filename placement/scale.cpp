#include "placement/scale.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <tuple>

#include "placement/capacity.h"
#include "placement/checks.h"
#include "placement/format.h"
#include "placement/roles.h"
#include "placement/seats.h"
#include "placement/streams.h"

namespace troupe::placement {

std::int64_t pool_size(const Plan& plan, const std::string& role) {
  return std::count_if(plan.actors.begin(), plan.actors.end(), [&](const PlannedActor& a) { return a.role == role; });
}

std::optional<std::int64_t> node_with_room(const Plan& plan, const PlannedActor& like) {
  const auto loads = node_loads(plan);
  std::optional<std::int64_t> best;
  double best_free = 0;
  for (std::size_t n = 0; n < plan.nodes.size(); ++n) {
    const NodeSnapshot& node = plan.nodes[n];
    const double free = usable_cpus(node) - loads[n].cpus;
    if (loads[n].memory_bytes + like.memory_bytes > usable_memory(node)) continue;
    if (like.role == RoleKind::rollout && n != 0) continue;  // beside the learners, which publish weights to it
    if (!node.devices.empty() && loads[n].cpus + like.cpus > static_cast<double>(node.cpus)) continue;
    if (best && free <= best_free) continue;
    best = static_cast<std::int64_t>(n);
    best_free = free;
  }
  return best;
}

namespace {

std::optional<std::string> refuse(const Plan& plan, const ClusterSnapshot& cluster, const JobConfig& job,
                                  const std::string& pool, std::int64_t target) {
  const std::vector<std::string> roles = planned_roles(job);
  const std::vector<std::string> elastic = elastic_roles(job);
  if (pool == RoleKind::env && steps_inline(job)) {
    return fmt::format(
        "there is no pool 'env': rollout workers step the environments themselves (cluster.isolation.env is inline); "
        "elastic pools: {}. For simulators end the job and go on with it: --resume auto cluster.isolation.env=process",
        join_names(elastic));
  }
  if (std::find(roles.begin(), roles.end(), pool) == roles.end()) {
    return fmt::format("there is no pool '{}'; elastic pools: {}.{}", pool, join_names(elastic),
                       did_you_mean(pool, roles));
  }
  if (std::find(elastic.begin(), elastic.end(), pool) == elastic.end()) {
    return fmt::format("{} is not an elastic pool; elastic pools: {}", pool, join_names(elastic));
  }
  const auto found = job.cluster.elastic.find(pool);
  const ElasticConfig bounds = found == job.cluster.elastic.end() ? ElasticConfig{} : found->second;
  if (target < bounds.min) {
    return fmt::format("{}={} is below cluster.elastic.{}.min {}; nearest: {}={}", pool, target, pool, bounds.min, pool,
                       bounds.min);
  }
  if (target > bounds.max) {
    return fmt::format("{}={} is above cluster.elastic.{}.max {}; nearest: {}={}", pool, target, pool, bounds.max, pool,
                       bounds.max);
  }
  const bool on_devices = std::ranges::any_of(plan.actors, [&](const PlannedActor& a) {
    return a.role == pool && a.role == RoleKind::rollout && !a.devices.empty();
  });
  if (on_devices && target > pool_size(plan, pool)) {
    return fmt::format(
        "{}={}: {} workers that act on devices have one each; for more end the job and go on with it: --resume auto "
        "cluster.component_placement.{}=...",
        pool, target, pool, pool);
  }
  for (std::size_t n = 0; n < plan.nodes.size(); ++n) {
    if (n < cluster.nodes.size() && cluster.nodes[n].name == plan.nodes[n].name) continue;
    return fmt::format(
        "node {} ({}) of the plan is not in the cluster; wait until it is back or the job is planned again", n,
        plan.nodes[n].name);
  }
  return std::nullopt;
}

std::int64_t lowest_free_rank(const Plan& plan, const std::string& role) {
  std::set<std::int64_t> taken;
  for (const PlannedActor& a : plan.actors) {
    if (a.role == role) taken.insert(a.process_rank);
  }
  std::int64_t rank = 0;
  while (taken.count(rank) != 0) ++rank;
  return rank;
}

void sort_actors(Plan& plan, const std::vector<std::string>& roles) {
  const auto order = [&](const PlannedActor& a) {
    return std::find(roles.begin(), roles.end(), a.role) - roles.begin();
  };
  std::stable_sort(plan.actors.begin(), plan.actors.end(), [&](const PlannedActor& a, const PlannedActor& b) {
    return std::pair{order(a), a.process_rank} < std::pair{order(b), b.process_rank};
  });
}

bool add_one(Plan& plan, const JobConfig& job, PlannedActor like) {
  const auto node = node_with_room(plan, like);
  if (!node) return false;
  like.process_rank = lowest_free_rank(plan, like.role);
  like.name = fmt::format("{}/{}", like.role, like.process_rank);
  like.node = *node;
  plan.actors.push_back(std::move(like));
  sort_actors(plan, planned_roles(job));
  return true;
}

void remove_one(Plan& plan, const std::string& role) {
  const auto loads = node_loads(plan);
  const auto share = [&](const PlannedActor& a) {
    const auto n = static_cast<std::size_t>(a.node);
    return loads[n].cpus / static_cast<double>(std::max<std::int64_t>(1, plan.nodes[n].cpus));
  };
  auto victim = plan.actors.end();
  for (auto it = plan.actors.begin(); it != plan.actors.end(); ++it) {
    if (it->role != role) continue;
    if (victim == plan.actors.end() || std::tuple{share(*it), it->node, it->process_rank} >
                                           std::tuple{share(*victim), victim->node, victim->process_rank}) {
      victim = it;
    }
  }
  plan.actors.erase(victim);
}

// What a new actor looks like: one that runs, or, when the pool was scaled to nothing, what the planner would have
// made.
PlannedActor template_actor(const Plan& plan, const JobConfig& job, const std::string& role) {
  for (const PlannedActor& a : plan.actors) {
    if (a.role == role) return a;
  }
  // plans of earlier versions have one number for all pools
  const bool holds_policy = role == RoleKind::rollout && plan.rollout_memory_bytes > 0;
  return {.role = role,
          .cpus = feeder_cpus(job, role),
          .isolation = isolation_of(job, role),
          .memory_bytes = holds_policy ? plan.rollout_memory_bytes : plan.decoder_memory_bytes};
}

}  // namespace

std::variant<Plan, Infeasible> scale_pool(const Plan& plan, const ClusterSnapshot& cluster, const JobConfig& job,
                                          const std::string& pool, std::int64_t target) {
  if (auto reason = refuse(plan, cluster, job, pool, target)) return Infeasible{{std::move(*reason)}};
  if (pool_size(plan, pool) == target) return plan;
  Plan next = plan;
  next.nodes = cluster.nodes;
  const PlannedActor like = template_actor(plan, job, pool);
  while (pool_size(next, pool) > target) remove_one(next, pool);
  while (pool_size(next, pool) < target) {
    if (add_one(next, job, like)) continue;
    const std::int64_t reached = pool_size(next, pool);
    return Infeasible{
        {fmt::format("{}={} does not fit: no node has {} cpu and {} left after {} actors; nearest: {}={}", pool, target,
                     format_cpus(like.cpus), format_bytes(like.memory_bytes), reached, pool, reached)}};
  }
  next.streams = plan_streams(job, next.actors, stream_sizes(job, next));
  std::erase_if(next.warnings, [](const std::string& w) { return w.starts_with("cpus: "); });
  for (std::string& warning : cpu_warnings(next)) next.warnings.push_back(std::move(warning));
  ++next.revision;
  return next;
}

}  // namespace troupe::placement
