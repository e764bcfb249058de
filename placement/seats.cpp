#include "placement/seats.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "configs/rank_text.h"
#include "placement/format.h"
#include "placement/placement_string.h"
#include "placement/resources.h"
#include "placement/rl_shape.h"
#include "placement/roles.h"

namespace troupe::placement {

namespace {

// How many actors of a pool are started per learner rank where nothing is said. An encoder holds the frozen encoders, a
// rollout worker the policy; decoders and simulators are cheap. On cores a simulator has threads instead of siblings.
struct PerRank {
  std::int64_t with_device = 0, without = 0;
};
PerRank per_rank_of(const std::string& role) {
  if (role == RoleKind::decoder) return {3, 2};
  if (role == RoleKind::env) return {4, 1};
  return {1, 1};
}

std::int64_t half_of_cores(const NodeSnapshot& node, std::int64_t ranks) {
  return std::max<std::int64_t>(1, node.cpus / 2 / ranks);
}

// "learner,decoder: 0-1" is one rule for two roles. Returns role -> rule, without the feeder that the job does not
// have.
std::map<std::string, PlacementConfig> split_keys(const JobConfig& job, std::vector<std::string>& reasons) {
  std::map<std::string, PlacementConfig> rules;
  const std::vector<std::string> known = planned_roles(job);
  for (const auto& [key, rule] : job.cluster.component_placement) {
    for (const std::string& role : roles_of_key(key)) {
      if (is_absent_role(role, job)) continue;
      if (std::find(known.begin(), known.end(), role) == known.end()) {
        reasons.push_back(fmt::format("cluster.component_placement: unknown role '{}'; roles of a {} job: {}.{}", role,
                                      enum_name(job.job.kind), join_names(known), did_you_mean(role, known)));
      } else if (!rules.emplace(role, rule).second) {
        reasons.push_back(fmt::format("cluster.component_placement places '{}' twice; keep one entry", role));
      }
    }
  }
  return rules;
}

// All resources of one process lie on one node and are either devices or the node itself.
std::optional<std::string> seat_from(const std::vector<std::int64_t>& numbers, const std::vector<Resource>& resources,
                                     const std::string& who, Seat& seat) {
  seat.node = resources[static_cast<std::size_t>(numbers.front())].node;
  for (const std::int64_t number : numbers) {
    const Resource& resource = resources[static_cast<std::size_t>(number)];
    if (resource.node != seat.node) {
      return fmt::format(
          "cluster.component_placement: {} gets resources of node {} and node {}; all resources of one process must "
          "lie "
          "on one node. Give it its own process on each node",
          who, seat.node, resource.node);
    }
    if (resource.device >= 0) seat.devices.push_back(resource.device);
  }
  return std::nullopt;
}

// What to add where a placement counts devices on nodes that have none; else empty.
std::string missing_devices(const ClusterSnapshot& cluster, const PlacementConfig& rule, const std::string& key) {
  const bool has_device = std::any_of(cluster.nodes.begin(), cluster.nodes.end(),
                                      [](const NodeSnapshot& node) { return !node.devices.empty(); });
  const bool only_too_few = parse_placement(rule.placement, kMaxRankRange, key).has_value();
  if (has_device || rule.node_group == "node" || !only_too_few) return {};
  return fmt::format(". {} no GPU, so that a node is one resource; `troupe plan JOB --pretend 8xH200` plans for GPUs",
                     cluster.nodes.size() == 1 ? "This machine has" : "These machines have");
}

std::vector<Seat> manual_seats(const ClusterSnapshot& cluster, const JobConfig& job, const std::string& role,
                               const PlacementConfig& rule, std::vector<std::string>& reasons) {
  const std::string key = "cluster.component_placement." + role;
  const auto resources = resources_of(cluster, job.cluster, rule.node_group);
  if (!resources) {
    reasons.push_back(resources.error().with(key).message());
    return {};
  }
  const auto map = parse_placement(rule.placement, static_cast<std::int64_t>(resources->size()), key);
  if (!map) {
    reasons.push_back(map.error().message() + missing_devices(cluster, rule, key));
    return {};
  }
  std::vector<Seat> seats(map->size());
  for (std::size_t p = 0; p < map->size(); ++p) {
    const auto problem = seat_from((*map)[p], *resources, fmt::format("{}/{}", role, p), seats[p]);
    if (problem) reasons.push_back(*problem);
  }
  return seats;
}

std::vector<Seat> default_learners(const ClusterSnapshot& cluster, const JobConfig& job) {
  std::vector<Seat> seats;
  // small networks learn on cores
  const std::size_t nodes = trains_dreamzero(job) ? cluster.nodes.size() : 0;
  for (std::size_t n = 0; n < nodes; ++n) {
    for (std::size_t d = 0; d < cluster.nodes[n].devices.size(); ++d) {
      seats.push_back({static_cast<std::int64_t>(n), {static_cast<std::int64_t>(d)}});
    }
  }
  // Ranks on cores work on the machine of `troupe run`; other nodes make samples for them.
  return seats.empty() ? std::vector<Seat>{Seat{}} : seats;
}

// Where the i-th who acts by a DreamZero on a node computes: beside learners, or on devices that they leave.
std::vector<std::int64_t> acting_devices(const NodeSnapshot& node, const JobConfig& job, std::size_t i) {
  if (!learns_dreamzero(job) || node.devices.empty()) return {};
  return {static_cast<std::int64_t>(i % node.devices.size())};
}

// As many per rank, and per node on cores that has none, as per_rank_of says and free cores go; at least elastic min
// (or one) and at most elastic max. Rollout workers sit beside learners, which publish weights to them; those that step
// their environments are as many as cores, as far as there are blocks: a learner on cores waits meanwhile, and one on a
// device leaves the free ones. DreamZero acts on devices: beside learners on cores on each that the node has.
std::vector<Seat> default_pool(const ClusterSnapshot& cluster, const JobConfig& job, const std::string& role,
                               const Seats& seats) {
  const PerRank per_rank = per_rank_of(role);
  const auto bounds = job.cluster.elastic.find(role);
  const ElasticConfig elastic = bounds == job.cluster.elastic.end() ? ElasticConfig{} : bounds->second;
  std::vector<std::int64_t> ranks(cluster.nodes.size()), checkpointers(cluster.nodes.size());
  std::vector<double> evaluators(cluster.nodes.size());
  for (const Seat& seat : seats.at("learner")) ++ranks[static_cast<std::size_t>(seat.node)];
  for (const Seat& seat : seats.at("checkpointer")) ++checkpointers[static_cast<std::size_t>(seat.node)];
  if (const auto found = seats.find("evaluator"); found != seats.end()) {
    for (const Seat& seat : found->second) evaluators[static_cast<std::size_t>(seat.node)] += kEvaluatorCpus;
  }
  std::vector<Seat> pool;
  const bool on_cores = seats.at("learner").front().devices.empty();
  for (std::size_t n = 0; n < cluster.nodes.size(); ++n) {
    const NodeSnapshot& node = cluster.nodes[n];
    const bool is_helper = ranks[n] == 0 && on_cores && role != RoleKind::rollout;
    if (ranks[n] == 0 && !is_helper) continue;
    const double taken = (ranks[n] == 0 ? 0.0 : learner_cpus(node, job, ranks[n])) * static_cast<double>(ranks[n]) +
                         checkpointer_cpus(node) * static_cast<double>(checkpointers[n]) + evaluators[n];
    const auto free =
        static_cast<std::int64_t>(std::floor(std::max(0.0, usable_cpus(node) - taken) / feeder_cpus(job, role)));
    std::int64_t wanted = std::max<std::int64_t>(ranks[n], is_helper ? 1 : 0) *
                          (node.devices.empty() ? per_rank.without : per_rank.with_device);
    if (role == RoleKind::rollout && on_cores && learns_dreamzero(job))
      wanted = std::max(wanted, std::min(static_cast<std::int64_t>(node.devices.size()), rl_shape(job).blocks));
    const bool steps = role == RoleKind::rollout && steps_inline(job);
    const std::int64_t cores = node.devices.empty() ? node.cpus : free;
    const std::int64_t count = steps ? std::min(cores, rl_shape(job).blocks) : std::min(free, wanted);
    for (std::int64_t i = 0; i < count; ++i) {
      pool.push_back({static_cast<std::int64_t>(n), {}});
      if (role == RoleKind::rollout) pool.back().devices = acting_devices(node, job, static_cast<std::size_t>(i));
    }
  }
  const auto least = static_cast<std::size_t>(std::max<std::int64_t>(1, elastic.min));
  const std::int64_t home = seats.at("learner").front().node;
  while (pool.size() < least) pool.push_back({home, {}});
  const auto most = static_cast<std::size_t>(std::max(elastic.max, elastic.min));
  if (pool.size() > std::max(most, least)) pool.resize(std::max(most, least));
  return pool;
}

}  // namespace

std::vector<std::string> planned_roles(const JobConfig& job) {
  std::vector<std::string> roles = {"learner"};
  for (std::string& role : elastic_roles(job)) roles.push_back(std::move(role));
  if (has_evaluator(job)) roles.emplace_back("evaluator");
  roles.emplace_back("checkpointer");
  return roles;
}

double usable_cpus(const NodeSnapshot& node) { return static_cast<double>(node.cpus) - (node.cpus >= 8 ? 1.0 : 0.25); }

std::int64_t learner_threads(const NodeSnapshot& node, const JobConfig& job, std::int64_t ranks_on_node) {
  if (job.cluster.threads.learner > 0) return job.cluster.threads.learner;
  const std::int64_t ranks = std::max<std::int64_t>(1, ranks_on_node), half = half_of_cores(node, ranks);
  if (!node.devices.empty()) return std::min<std::int64_t>(half, 2);
  if (node.cpus < kSharedCores) return std::max<std::int64_t>(1, node.cpus / ranks);
  double feeders = 0;
  // simulators step while the learner waits
  for (const std::string& role : elastic_roles(job)) {
    if (role != RoleKind::env) feeders += feeder_cpus(job, role) * static_cast<double>(per_rank_of(role).without);
  }
  const double left = usable_cpus(node) - checkpointer_cpus(node);
  return std::max(half, static_cast<std::int64_t>(left / static_cast<double>(ranks) - feeders));
}

double learner_cpus(const NodeSnapshot& node, const JobConfig& job, std::int64_t ranks_on_node) {
  const bool shares = node.devices.empty() && node.cpus < kSharedCores && job.cluster.threads.learner == 0;
  return static_cast<double>(shares ? half_of_cores(node, std::max<std::int64_t>(1, ranks_on_node))
                                    : learner_threads(node, job, ranks_on_node));
}

double feeder_cpus(const JobConfig& job, const std::string& role) {
  return role == RoleKind::encoder ? static_cast<double>(job.cluster.threads.encoder) : 1;
}

double elastic_cpus(const NodeSnapshot& node, const JobConfig& job, const std::string& role,
                    std::int64_t actors_on_node) {
  if (role != RoleKind::env) return feeder_cpus(job, role);
  const std::int64_t share = node.cpus / std::max<std::int64_t>(1, actors_on_node);
  return static_cast<double>(node.devices.empty() ? std::max<std::int64_t>(1, share) : 1);
}

double checkpointer_cpus(const NodeSnapshot& node) { return node.cpus >= 16 ? 2 : 1; }

Seats resolve_seats(const ClusterSnapshot& cluster, const JobConfig& job, std::vector<std::string>& reasons) {
  Seats seats;
  for (const auto& [role, rule] : split_keys(job, reasons))
    seats[role] = manual_seats(cluster, job, role, rule, reasons);
  if (seats.count("learner") == 0) seats["learner"] = default_learners(cluster, job);
  if (seats.count("checkpointer") == 0) seats["checkpointer"] = {Seat{}};
  if (has_evaluator(job) && seats.count("evaluator") == 0)
    seats["evaluator"] = {Seat{0, acting_devices(cluster.nodes.front(), job, 0)}};
  if (!reasons.empty()) return seats;
  for (const std::string& role : elastic_roles(job)) {
    if (seats.count(role) == 0) seats[role] = default_pool(cluster, job, role, seats);
  }
  return seats;
}

}  // namespace troupe::placement
