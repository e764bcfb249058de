#include "placement/planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "placement/capacity.h"
#include "placement/checks.h"
#include "placement/format.h"
#include "placement/memory_model.h"
#include "placement/product_form.h"
#include "placement/replay_log_size.h"
#include "placement/roles.h"
#include "placement/seats.h"
#include "placement/sharding.h"
#include "placement/streams.h"

namespace troupe::placement {

namespace {

// Buffers of the checkpointer beside the arenas it maps.
constexpr std::int64_t kCheckpointerBytes = std::int64_t{64} << 20;

bool on_devices(const Seats& seats) { return !seats.at("learner").front().devices.empty(); }

/// Of one actor that is neither a learner nor the checkpointer.
std::int64_t working_memory(const ModelCost& cost, const std::string& role) {
  if (role == RoleKind::rollout) return cost.rollout_bytes;
  if (role == RoleKind::evaluator) return cost.evaluator_bytes;
  return cost.decoder_bytes;
}

/// Of one actor that is no learner.
std::int64_t device_memory(const ModelCost& cost, const PlannedActor& actor) {
  if (actor.devices.empty()) return 0;
  const std::int64_t bytes = actor.role == RoleKind::rollout     ? cost.rollout_device_bytes
                             : actor.role == RoleKind::evaluator ? cost.evaluator_device_bytes
                                                                 : 0;
  return bytes + device_margin(bytes);
}

// Everything that depends on batch sizes and number formats, so that alternatives can be tried.
void fill_memory(const JobConfig& job, const ModelCost& cost, Plan& plan) {
  const std::int64_t ranks = plan.batch.data_ranks;
  plan.batch.micro = job.training.micro_batch_size;
  plan.batch.accumulation = plan.batch.global / (plan.batch.micro * ranks);
  MemoryTable& table = plan.learner_memory;
  table = learner_memory(job, cost, ranks, feed_slots(job, plan.batch));
  const bool devices = !plan.actors.front().devices.empty();
  if (devices) table.margin_bytes = device_margin(table.engine_bytes());
  // the first replica's state is that of all
  const std::int64_t savers = sharing_ranks(job.parallelism, ranks);
  std::int64_t remote_ranks = 0, checkpointer_node = 0;
  for (const PlannedActor& a : plan.actors) {
    if (a.role == RoleKind::checkpointer) checkpointer_node = a.node;
  }
  for (PlannedActor& a : plan.actors) {
    if (a.role == RoleKind::learner) {
      a.memory_bytes = devices ? table.host_bytes() : table.total();
      if (a.node != checkpointer_node && a.process_rank < savers) ++remote_ranks;
    } else if (is_elastic(a.role) || a.role == RoleKind::evaluator) {
      a.memory_bytes = working_memory(cost, a.role);
      a.device_bytes = device_memory(cost, a);
    } else {
      // Shards of ranks on other nodes arrive over the network and are staged here.
      a.memory_bytes = kCheckpointerBytes + remote_ranks * table.snapshot_bytes;
    }
  }
}

std::int64_t on_node(const std::vector<Seat>& seats, std::int64_t node) {
  return std::count_if(seats.begin(), seats.end(), [&](const Seat& seat) { return seat.node == node; });
}

std::vector<PlannedActor> make_actors(const ClusterSnapshot& cluster, const JobConfig& job, const Seats& seats) {
  std::vector<std::int64_t> ranks(cluster.nodes.size());
  for (const Seat& seat : seats.at("learner")) ++ranks[static_cast<std::size_t>(seat.node)];
  std::vector<PlannedActor> actors;
  for (const std::string& role : planned_roles(job)) {
    const auto& mine = seats.at(role);
    for (std::size_t p = 0; p < mine.size(); ++p) {
      const auto n = static_cast<std::size_t>(mine[p].node);
      const NodeSnapshot& node = cluster.nodes[n];
      PlannedActor actor{.name = fmt::format("{}/{}", role, p),
                         .role = role,
                         .process_rank = static_cast<std::int64_t>(p),
                         .node = mine[p].node,
                         .devices = mine[p].devices,
                         .cpus = elastic_cpus(node, job, role, on_node(mine, mine[p].node)),
                         .isolation = isolation_of(job, role)};
      if (role == RoleKind::learner) {
        actor.cpus = learner_cpus(node, job, ranks[n]);
        actor.threads = learner_threads(node, job, ranks[n]);
      }
      if (role == RoleKind::evaluator) actor.cpus = kEvaluatorCpus;
      if (role == RoleKind::checkpointer) actor.cpus = checkpointer_cpus(node);
      actors.push_back(std::move(actor));
    }
  }
  return actors;
}

// The largest smaller micro-batch that divides the batch and fits, in words; empty when there is none.
std::string smaller_micro_batch(const JobConfig& job, const ModelCost& cost, const Plan& plan) {
  const std::int64_t per_rank = plan.batch.global / plan.batch.data_ranks;
  for (std::int64_t micro = plan.batch.micro - 1; micro >= 1; --micro) {
    if (per_rank % micro != 0) continue;
    JobConfig trial_job = job;
    trial_job.training.micro_batch_size = micro;
    Plan trial = plan;
    fill_memory(trial_job, cost, trial);
    if (!find_memory_problem(trial)) {
      return fmt::format("Largest fitting micro_batch_size: {} ({}).", micro, format_bytes(peak_need(trial)));
    }
  }
  return "No smaller micro_batch_size fits.";
}

// More ranks on devices like these; only counts that divide the batch.
std::string more_devices(const JobConfig& job, const ModelCost& cost, const Plan& plan) {
  const PlannedActor& first = plan.actors.front();
  if (first.devices.empty()) return {};
  const auto& node = plan.nodes[static_cast<std::size_t>(first.node)];
  const std::int64_t memory = node.devices[static_cast<std::size_t>(first.devices[0])].memory_bytes;
  for (std::int64_t ranks = plan.batch.data_ranks * 2; ranks <= plan.batch.data_ranks * 64; ranks *= 2) {
    if (plan.batch.global % (plan.batch.micro * ranks) != 0) break;
    MemoryTable table = learner_memory(job, cost, ranks, 0);
    if (table.engine_bytes() + device_margin(table.engine_bytes()) <= memory) return fmt::format("{} GPUs", ranks);
  }
  return {};
}

Plan without_devices(Plan plan, const std::string& role) {
  for (PlannedActor& actor : plan.actors) {
    if (actor.role == role) actor.devices.clear();
  }
  return plan;
}

// Changes that were tried on the model and fit.
std::string other_changes(const JobConfig& job, const ModelCost& cost, const Plan& plan) {
  std::vector<std::string> changes;
  const auto try_change = [&](const char* text, auto&& change) {
    JobConfig trial_job = job;
    change(trial_job);
    Plan trial = plan;
    fill_memory(trial_job, cost, trial);
    if (!find_memory_problem(trial)) changes.emplace_back(text);
  };
  if (job.precision.param != "bf16")
    try_change("precision.param=bf16", [](JobConfig& j) { j.precision.param = "bf16"; });
  if (job.parallelism.param_slots > 2)
    try_change("parallelism.param_slots=2", [](JobConfig& j) { j.parallelism.param_slots = 2; });
  if (!job.offload.states && job.job.kind == JobKind::sft)
    try_change("offload.states=true", [](JobConfig& j) { j.offload.states = true; });
  if (job.data.prefetch_batches > 1)
    try_change("data.prefetch_batches=1", [](JobConfig& j) { j.data.prefetch_batches = 1; });
  for (const char* role : {"evaluator", "rollout"}) {
    Plan trial = without_devices(plan, role);
    fill_memory(job, cost, trial);
    if (!find_memory_problem(trial)) changes.push_back(placed_on_cores(job, role));
  }
  const std::string devices = more_devices(job, cost, plan);
  if (!devices.empty()) changes.push_back(devices);
  if (changes.empty()) return {};
  return "\n      also possible: " + fmt::format("{}", fmt::join(changes, ", "));
}

void check_capacity(const JobConfig& job, const ModelCost& cost, const Plan& plan, std::vector<std::string>& reasons) {
  if (const auto problem = find_memory_problem(plan)) {
    const bool on_cores = std::all_of(plan.nodes.begin(), plan.nodes.end(),
                                      [](const NodeSnapshot& node) { return node.devices.empty(); });
    reasons.push_back(
        fmt::format("{}. {}{}{}", problem->text, smaller_micro_batch(job, cost, plan), other_changes(job, cost, plan),
                    on_cores ? "\n      no GPU is there; `troupe plan JOB --pretend 8xH200` plans for GPUs" : ""));
  }
  for (std::string& problem : cpu_problems(plan)) reasons.push_back(std::move(problem));
}

// The nodes to plan on, or a reason.
ClusterSnapshot select_nodes(const ClusterSnapshot& cluster, const JobConfig& job, Plan& plan,
                             std::vector<std::string>& reasons) {
  const auto have = static_cast<std::int64_t>(cluster.nodes.size()), want = job.cluster.num_nodes;
  ClusterSnapshot selected = cluster;
  if (have < want) {
    reasons.push_back(
        fmt::format("cluster.num_nodes {} asks for more nodes than there are, {}\n      fix: {}", want, have,
                    have == 0 ? std::string("start a node")
                              : fmt::format("start {} more, or cluster.num_nodes={}", want - have, have)));
  } else if (have > want) {
    selected.nodes.resize(static_cast<std::size_t>(want));
    plan.warnings.push_back(
        fmt::format("nodes: {} of {} nodes are used; cluster.num_nodes={} would use all", want, have, have));
  }
  return selected;
}

bool is_placed(const JobConfig& job, const std::string& role) {
  return std::ranges::any_of(job.cluster.component_placement, [&](const auto& entry) {
    const auto roles = roles_of_key(entry.first);
    return std::ranges::find(roles, role) != roles.end();
  });
}

// An evaluator that no one placed leaves a device that has no room for it.
void leave_full_device(const JobConfig& job, const ModelCost& cost, Plan& plan) {
  const std::string role = "evaluator";
  const PlannedActor* evaluator = find_actor(plan, kEvaluatorActor);
  if (evaluator == nullptr || evaluator->devices.empty() || is_placed(job, role) || !find_memory_problem(plan)) return;
  const std::int64_t device = evaluator->devices.front(), need = evaluator->device_bytes;
  Plan moved = without_devices(plan, role);
  fill_memory(job, cost, moved);
  if (find_memory_problem(moved)) return;
  plan = std::move(moved);
  plan.warnings.push_back(
      fmt::format("evaluator: it computes on cores, as device {} has no room for its {}", device, format_bytes(need)));
}

// What the job says of the feeder that it does not have.
void warn_of_unused_feeder(const JobConfig& job, Plan& plan) {
  if (job.job.kind != JobKind::sft) return;
  const std::string used = feeder_role(job), unused = used == RoleKind::decoder ? "encoder" : "decoder";
  const ClusterConfig& cluster = job.cluster;
  const bool named = cluster.elastic.count(unused) != 0 || cluster.isolation.count(unused) != 0 ||
                     cluster.component_placement.count(unused) != 0 ||
                     (unused == RoleKind::encoder && cluster.threads.encoder != ThreadsConfig().encoder);
  if (!named) return;
  plan.warnings.push_back(fmt::format(
      "feeder: data.features.encode is {}, so that {}s feed the learners; what cluster says of '{}' is not used",
      job.data.features.encode, used, unused));
}

void add_warnings(const JobConfig& job, Plan& plan) {
  warn_of_unused_feeder(job, plan);
  for (std::string& warning : cpu_warnings(plan)) plan.warnings.push_back(std::move(warning));
}

}  // namespace

std::variant<Plan, Infeasible> make_plan(const ClusterSnapshot& cluster, const JobConfig& given,
                                         const ModelCost& cost) {
  std::vector<std::string> reasons;
  Plan plan;
  plan.job = given.job.name;
  const ClusterSnapshot used = select_nodes(cluster, given, plan, reasons);
  if (!reasons.empty()) return Infeasible{std::move(reasons)};
  plan.nodes = used.nodes;

  const Seats seats = resolve_seats(used, given, reasons);
  if (!reasons.empty()) return Infeasible{std::move(reasons)};
  check_seats(used, given, seats, reasons);
  check_isolation(given, seats, reasons);
  check_reduce(given, seats, reasons);
  const auto ranks = static_cast<std::int64_t>(seats.at("learner").size());
  plan.batch = plan_batch(given, ranks, reasons);
  if (!reasons.empty()) return Infeasible{std::move(reasons)};

  plan.collective = on_devices(seats) && ranks > 1               ? "nccl"
                    : isolation_of(given, "learner") == "thread" ? "thread"
                                                                 : "gloo";
  if (multiplies_bf16(given) && !on_devices(seats)) plan.products = product_form(given, cluster.products);
  for (const UnitCost& unit : cost.units) {
    plan.parameters += unit.params;
    if (!unit.trainable) plan.frozen_parameters += unit.params;
  }
  plan.actors = make_actors(used, given, seats);
  const JobConfig job = with_sharding(given, cost, plan.batch, [&](const JobConfig& decided) {
    Plan filled = plan;
    fill_memory(decided, cost, filled);
    return !find_memory_problem(filled);
  });
  plan.sharding = job.parallelism.mode;
  plan.recompute_counts = job.activation_checkpoint.counts;
  if (plan.recompute_counts.empty()) plan.activation_checkpoint = job.activation_checkpoint.mode;
  fill_memory(job, cost, plan);
  leave_full_device(job, cost, plan);
  plan.disk_bytes_per_checkpoint = plan.learner_memory.snapshot_bytes * sharing_ranks(job.parallelism, ranks);
  plan.feed_slots = feed_slots(job, plan.batch);
  plan.sample_bytes = cost.sample_bytes;
  plan.decoder_memory_bytes = cost.decoder_bytes;
  plan.rollout_memory_bytes = cost.rollout_bytes;
  plan.block_slots = job.job.kind == JobKind::rl ? block_slots(job) : 0;
  plan.block_bytes = cost.block_bytes;
  plan.streams = plan_streams(job, plan.actors, stream_sizes(job, plan));
  check_capacity(job, cost, plan, reasons);
  if (auto problem = find_replay_log_problem(job, cost.sample_bytes)) reasons.push_back(std::move(*problem));
  if (!reasons.empty()) return Infeasible{std::move(reasons)};
  add_warnings(job, plan);
  return plan;
}

JobConfig decided_job(JobConfig job, const Plan& plan) {
  job.parallelism.mode = plan.sharding;
  job.activation_checkpoint = {.mode = plan.activation_checkpoint, .counts = plan.recompute_counts};
  return job;
}

}  // namespace troupe::placement
