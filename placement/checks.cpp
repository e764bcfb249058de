#include "placement/checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "placement/format.h"
#include "placement/rl_shape.h"
#include "placement/roles.h"

namespace troupe::placement {

namespace {

std::string own_devices(std::size_t ranks) {
  return fmt::format("Give every learner rank its own device, as cluster.component_placement.learner={}",
                     ranks > 1 ? fmt::format("0-{}", ranks - 1) : "0");
}

std::string on_cores(const JobConfig& job, const std::string& role) {
  return fmt::format("Place {}s on cores, as '{}'", role, placed_on_cores(job, role));
}

/// The first device that a role takes from another process; empty: none. Who acts may share a learner's, as they take
/// turns with it.
using DeviceOwners = std::map<std::pair<std::int64_t, std::int64_t>, std::string>;
std::string shared_device(const JobConfig& job, const std::string& role, const std::vector<Seat>& seats,
                          DeviceOwners& owners) {
  for (std::size_t p = 0; p < seats.size(); ++p) {
    for (const std::int64_t device : seats[p].devices) {
      const std::string name = fmt::format("{}/{}", role, p);
      const auto [owner, added] = owners.emplace(std::pair{seats[p].node, device}, name);
      if (added) continue;
      return fmt::format("device {} of node {} is given to {} and to {}; devices may not be shared. {}", device,
                         seats[p].node, owner->second, name,
                         role == RoleKind::learner ? own_devices(seats.size()) : on_cores(job, role));
    }
  }
  return {};
}

/// One sentence for each role; the others of a role would repeat it.
void check_devices(const JobConfig& job, const Seats& seats, std::vector<std::string>& reasons) {
  DeviceOwners owners;
  for (const std::string& role : planned_roles(job)) {
    DeviceOwners own;
    const bool acts = role != RoleKind::learner && uses_devices(job, role);
    if (std::string shared = shared_device(job, role, seats.at(role), acts ? own : owners); !shared.empty())
      reasons.push_back(std::move(shared));
  }
}

void check_learners(const ClusterSnapshot& cluster, const std::vector<Seat>& learners,
                    std::vector<std::string>& reasons) {
  std::string model;
  std::size_t with_device = 0;
  for (std::size_t p = 0; p < learners.size(); ++p) {
    const Seat& seat = learners[p];
    if (seat.devices.size() > 1) {
      reasons.push_back(fmt::format(
          "learner/{} gets {} devices; a learner rank drives one device. Write as many process ranks as devices", p,
          seat.devices.size()));
      return;
    }
    if (seat.devices.empty()) continue;
    ++with_device;
    const auto& node = cluster.nodes[static_cast<std::size_t>(seat.node)];
    const std::string& mine = node.devices[static_cast<std::size_t>(seat.devices[0])].model;
    if (model.empty()) model = mine;
    if (mine != model) {
      reasons.push_back(fmt::format(
          "learners sit on devices of two models, {} and {} (learner/{}); one model is needed. Restrict them to "
          "a node group of equal devices",
          model, mine, p));
      return;
    }
  }
  if (with_device != 0 && with_device != learners.size()) {
    reasons.push_back(fmt::format(
        "{} of {} learner ranks have a device and the others run on cores; all or none must. Restrict them to "
        "a node group of equal nodes",
        with_device, learners.size()));
  }
}

void check_pool_size(const JobConfig& job, const Seats& seats, std::vector<std::string>& reasons) {
  const std::vector<std::string> elastic = elastic_roles(job);
  for (const auto& [pool, bounds] : job.cluster.elastic) {
    if (is_absent_role(pool, job)) continue;
    if (std::find(elastic.begin(), elastic.end(), pool) == elastic.end()) {
      reasons.push_back(fmt::format("cluster.elastic.{}: {} is not an elastic pool; elastic pools: {}.{}", pool, pool,
                                    join_names(elastic), did_you_mean(pool, elastic)));
      continue;
    }
    const auto size = static_cast<std::int64_t>(seats.at(pool).size());
    if (bounds.min > bounds.max) {
      reasons.push_back(fmt::format("cluster.elastic.{}: min {} is above max {}", pool, bounds.min, bounds.max));
    } else if (size < bounds.min || size > bounds.max) {
      reasons.push_back(fmt::format("placement starts {} {}s; cluster.elastic.{} allows {} to {}. Nearest: {} {}s",
                                    size, pool, pool, bounds.min, bounds.max, std::clamp(size, bounds.min, bounds.max),
                                    pool));
    }
  }
}

// What computes on cores would leave a device idle; rollout workers and the evaluator drive one.
void check_acting_devices(const JobConfig& job, const Seats& seats, std::vector<std::string>& reasons) {
  for (const std::string& role : planned_roles(job)) {
    if (role == RoleKind::decoder || role == RoleKind::learner || role == RoleKind::checkpointer) continue;
    const auto& mine = seats.at(role);
    for (std::size_t p = 0; p < mine.size(); ++p) {
      const auto& devices = mine[p].devices;
      if (devices.empty() || (uses_devices(job, role) && devices.size() == 1)) continue;
      reasons.push_back(
          uses_devices(job, role)
              ? fmt::format("{}/{} gets {} devices; it drives one. Write as many process ranks as devices", role, p,
                            devices.size())
              : fmt::format("{}/{} is given device {} of node {}; {}s of this job compute on cores. {}", role, p,
                            devices.front(), mine[p].node, role, on_cores(job, role)));
      return;
    }
  }
}

std::int64_t largest_divisor_up_to(std::int64_t value, std::int64_t limit) {
  for (std::int64_t d = std::min(value, limit); d > 1; --d) {
    if (value % d == 0) return d;
  }
  return 1;
}

}  // namespace

void check_seats(const ClusterSnapshot& cluster, const JobConfig& job, const Seats& seats,
                 std::vector<std::string>& reasons) {
  check_devices(job, seats, reasons);
  check_acting_devices(job, seats, reasons);
  check_learners(cluster, seats.at("learner"), reasons);
  for (const char* role : {"evaluator", "checkpointer"}) {
    const auto mine = seats.find(role);
    if (mine == seats.end() || mine->second.size() == 1) continue;
    reasons.push_back(fmt::format("cluster.component_placement.{} starts {} {}s; exactly one is needed, such as \"0\"",
                                  role, mine->second.size(), role));
  }
  check_pool_size(job, seats, reasons);
}

std::string placed_on_cores(const JobConfig& job, const std::string& role) {
  const auto& placements = job.cluster.component_placement;
  const auto rule = placements.find(role);
  return fmt::format("cluster.component_placement.{}={{node_group: node, placement: \"{}\"}}", role,
                     rule == placements.end() ? "0" : rule->second.placement);
}

std::string isolation_of(const JobConfig& job, const std::string& role) {
  const auto found = job.cluster.isolation.find(role);
  return found == job.cluster.isolation.end() ? "process" : found->second;
}

void check_isolation(const JobConfig& job, const Seats& seats, std::vector<std::string>& reasons) {
  const std::vector<std::string> known = planned_roles(job);
  for (const auto& [role, value] : job.cluster.isolation) {
    if (is_absent_role(role, job)) continue;
    if (std::find(known.begin(), known.end(), role) == known.end()) {
      reasons.push_back(fmt::format("cluster.isolation: unknown role '{}'; roles: {}.{}", role, join_names(known),
                                    did_you_mean(role, known)));
    } else if (value != "process" && value != "thread") {
      reasons.push_back(fmt::format("cluster.isolation.{} is '{}'; wanted process or thread", role, value));
    }
  }
  for (const std::string& role : known) {
    const bool has_device = std::ranges::any_of(seats.at(role), [](const Seat& seat) { return !seat.devices.empty(); });
    if (!has_device || !uses_devices(job, role) || isolation_of(job, role) != "thread") continue;
    reasons.push_back(
        fmt::format("cluster.isolation.{} is thread; what computes on a device is a process of its own. "
                    "Set cluster.isolation.{}=process",
                    role, role));
    return;
  }
  if (isolation_of(job, "learner") != "thread") return;
  const auto& learners = seats.at("learner");
  for (const Seat& seat : learners) {
    if (seat.node != learners.front().node) {
      reasons.push_back(
          fmt::format("cluster.isolation.learner is thread, which needs all ranks on one node; they sit on node {} and "
                      "node {}. Set cluster.isolation.learner=process",
                      learners.front().node, seat.node));
      return;
    }
  }
}

void check_reduce(const JobConfig& job, const Seats& seats, std::vector<std::string>& reasons) {
  const auto& learners = seats.at("learner");
  if (job.parallelism.reduce != "nccl" || learners.size() == 1 || !learners.front().devices.empty()) return;
  reasons.push_back(
      fmt::format("parallelism.reduce is nccl, and the {} learners are on cores, which have no NCCL. "
                  "Set parallelism.reduce=ranks",
                  learners.size()));
}

namespace {

// Positions are trajectory items, and every rank trains whole blocks.
BatchPlan plan_rl_batch(const JobConfig& job, std::int64_t ranks, std::vector<std::string>& reasons) {
  const RlShape shape = rl_shape(job);
  const BatchPlan batch{.global = shape.items_per_step(),
                        .micro = 1,
                        .data_ranks = ranks,
                        .accumulation = shape.items_per_step() / std::max<std::int64_t>(1, ranks)};
  const std::int64_t minibatch = job.training.global_batch_size, pass = job.training.micro_batch_size * ranks;
  if (shape.blocks % ranks != 0) {
    reasons.push_back(fmt::format("env.blocks {} cannot be split over {} learner ranks\n      fix: env.blocks={}",
                                  shape.blocks, ranks, (shape.blocks + ranks - 1) / ranks * ranks));
  }
  if (minibatch % pass != 0) {
    reasons.push_back(
        fmt::format("training.global_batch_size {} is not a multiple of micro_batch_size {} x {} data ranks = {}\n"
                    "      fix: training.global_batch_size={}",
                    minibatch, job.training.micro_batch_size, ranks, pass, (minibatch + pass - 1) / pass * pass));
  }
  return batch;
}

}  // namespace

BatchPlan plan_batch(const JobConfig& job, std::int64_t ranks, std::vector<std::string>& reasons) {
  if (job.job.kind == JobKind::rl) return plan_rl_batch(job, ranks, reasons);
  const std::int64_t global = job.training.global_batch_size, micro = job.training.micro_batch_size;
  const std::int64_t pass = micro * ranks;
  BatchPlan batch{.global = global, .micro = micro, .data_ranks = ranks, .accumulation = global / pass};
  if (global % pass != 0) {
    const std::int64_t nearest = std::max<std::int64_t>(1, (global + pass / 2) / pass) * pass;
    const std::string other =
        global % ranks != 0
            ? fmt::format("({} cannot be split over {} data ranks at any micro-batch size)", global, ranks)
            : fmt::format("or training.micro_batch_size={}", largest_divisor_up_to(global / ranks, micro));
    reasons.push_back(
        fmt::format("training.global_batch_size {} is not a multiple of micro_batch_size {} x {} data ranks = {}\n"
                    "      fix: training.global_batch_size={} {}",
                    global, micro, ranks, pass, nearest, other));
  }
  const std::int64_t degree = job.parallelism.data_parallel_shard_degree;
  const bool is_hybrid = job.parallelism.mode == "hybrid";
  if (!is_hybrid && degree != -1 && degree != ranks) {
    reasons.push_back(
        fmt::format("parallelism.data_parallel_shard_degree {} is not the number of learner ranks, {}\n"
                    "      fix: parallelism.data_parallel_shard_degree=-1 (all ranks), or parallelism.mode=hybrid",
                    degree, ranks));
  }
  if (is_hybrid && (degree == -1 || ranks % degree != 0)) {
    const std::int64_t wanted = degree == -1 ? std::max<std::int64_t>(1, ranks / 2) : degree;
    reasons.push_back(
        fmt::format("parallelism.mode hybrid wants a data_parallel_shard_degree that divides the {} learner ranks, "
                    "not {}\n"
                    "      fix: parallelism.data_parallel_shard_degree={}, or parallelism.mode=zero3",
                    ranks, degree, largest_divisor_up_to(ranks, wanted)));
  }
  return batch;
}

}  // namespace troupe::placement
