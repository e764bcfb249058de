#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

#include "placement/capacity.h"
#include "placement/format.h"
#include "placement/known_devices.h"
#include "placement/memory_model.h"
#include "placement/recompute_plan.h"
#include "placement/render.h"
#include "placement/replay_log_size.h"
#include "placement/rl_shape.h"
#include "placement/roles.h"
#include "placement/seats.h"
#include "placement/sharding.h"

namespace troupe::placement {

namespace {

constexpr const char* kRow = "  {:<13} {:<6} {:<16} {:<9} {:<19} {}\n";

std::vector<const PlannedActor*> actors_of(const Plan& plan, const std::string& role) {
  std::vector<const PlannedActor*> actors;
  for (const PlannedActor& a : plan.actors) {
    if (a.role == role) actors.push_back(&a);
  }
  return actors;
}

// Ascending numbers as "0-3,5".
std::string to_ranges(const std::vector<std::int64_t>& numbers) {
  std::string text;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t j = i;
    while (j + 1 < numbers.size() && numbers[j + 1] == numbers[j] + 1) ++j;
    text += fmt::format("{}{}", text.empty() ? "" : ",", numbers[i]);
    if (j > i) text += fmt::format("-{}", numbers[j]);
    i = j + 1;
  }
  return text;
}

// "gpu 0-7", "node 0:0-23", or one entry per node: "node 0 gpu 0-7; node 1 gpu 0-7".
std::vector<std::string> places(const Plan& plan, const std::vector<const PlannedActor*>& actors) {
  std::map<std::int64_t, std::pair<std::vector<std::int64_t>, std::vector<std::int64_t>>> by_node;  // ranks, devices
  for (const PlannedActor* a : actors) {
    auto& [ranks, devices] = by_node[a->node];
    ranks.push_back(a->process_rank);
    devices.insert(devices.end(), a->devices.begin(), a->devices.end());
  }
  std::vector<std::string> lines;
  for (auto& [node, entry] : by_node) {
    auto& [ranks, devices] = entry;
    std::sort(devices.begin(), devices.end());
    if (!devices.empty()) {
      lines.push_back(plan.nodes.size() == 1 ? fmt::format("gpu {}", to_ranges(devices))
                                             : fmt::format("node {} gpu {}", node, to_ranges(devices)));
    } else {
      lines.push_back(actors.size() == 1 ? fmt::format("node {}", node)
                                         : fmt::format("node {}:{}", node, to_ranges(ranks)));
    }
  }
  return lines;
}

std::string cpus_text(const std::vector<const PlannedActor*>& actors) {
  const auto [least, most] = std::minmax_element(
      actors.begin(), actors.end(), [](const PlannedActor* a, const PlannedActor* b) { return a->cpus < b->cpus; });
  if ((*least)->cpus != (*most)->cpus)
    return fmt::format("{}-{} each", format_cpus((*least)->cpus), format_cpus((*most)->cpus));
  return actors.size() == 1 ? format_cpus((*most)->cpus) : format_cpus((*most)->cpus) + " each";
}

// Lays a role's lines out in columns; places and notes may be longer than one line.
std::string block(const std::string& role, const std::vector<const PlannedActor*>& actors,
                  const std::vector<std::string>& where, const std::string& memory,
                  const std::vector<std::string>& notes) {
  std::string text;
  for (std::size_t i = 0; i < std::max(where.size(), notes.size()); ++i) {
    const bool first = i == 0;
    std::string line = fmt::format(fmt::runtime(kRow), first ? role : "", first ? std::to_string(actors.size()) : "",
                                   i < where.size() ? where[i] : "", first ? cpus_text(actors) : "",
                                   first ? memory : "", i < notes.size() ? notes[i] : "");
    line.erase(line.find_last_not_of(" \n") + 1);
    text += line + "\n";
  }
  return text;
}

bool trains_adapters(const Plan& plan) { return plan.frozen_parameters > 0; }

// "5.61e9 params x 18 B (fp32 weight, grad, 2 Adam, bf16 copy) / 8", before it what is frozen.
std::string state_note(const Plan& plan, const JobConfig& job) {
  std::string moments = job.optimizer.moments == "bf16" ? "2 bf16 Adam" : "2 Adam";
  if (job.optimizer.name == "sophia") moments = "momentum, curvature";
  const std::string trained =
      fmt::format("{} params x {} B (fp32 weight, grad, {}{}{})",
                  format_count(plan.parameters - plan.frozen_parameters), state_bytes_per_param(job), moments,
                  job.ema.decay > 0 ? ", average" : "", job.precision.param == "bf16" ? ", bf16 copy" : "");
  const std::int64_t sharing = sharing_ranks(job.parallelism, plan.batch.data_ranks);
  if (!trains_adapters(plan)) return fmt::format("{} / {}", trained, sharing);
  return fmt::format("({} frozen params x {} B + {}) / {}", format_count(plan.frozen_parameters),
                     gathered_bytes_per_param(job), trained, sharing);
}

// What is whole on every rank.
std::string gathered_note(const Plan& plan, const JobConfig& job) {
  // a rank that is alone reads its shards in place
  const bool is_alone = sharing_ranks(job.parallelism, plan.batch.data_ranks) == 1;
  if (plan.sharding == "zero1") return "zero1: all params and grads";
  if (plan.sharding == "zero2") return fmt::format("zero2: all params, {} grad slots", job.parallelism.grad_slots);
  const std::int64_t slots = is_alone ? 0 : job.parallelism.param_slots;
  if (trains_adapters(plan)) return fmt::format("{} param slots, trained params and grads", slots);
  return fmt::format("{} param + {} grad slots", slots, is_alone ? 1 : job.parallelism.grad_slots);
}

// ", 40.2 GiB of its GPU" of who acts on one.
std::string device_note(const PlannedActor& actor) {
  return actor.device_bytes > 0 ? fmt::format(", {} of its GPU", format_bytes(actor.device_bytes)) : "";
}

std::string saved_note(const Plan& plan, const JobConfig& job) {
  return fmt::format("{} B/{}param", saved_bytes_per_param(job), trains_adapters(plan) ? "trained " : "");
}

std::string learner_block(const Plan& plan, const JobConfig& job) {
  const auto actors = actors_of(plan, "learner");
  const MemoryTable& m = plan.learner_memory;
  const bool devices = !actors.front()->devices.empty();
  std::vector<std::string> notes = {
      state_note(plan, job),
      fmt::format("+ gathered {} ({}) + encoders {}", format_bytes(m.param_slot_bytes + m.grad_slot_bytes),
                  gathered_note(plan, job), format_bytes(m.encoder_bytes)),
      fmt::format("+ activations {} (recompute {}, mbs {})", format_bytes(m.activation_bytes), recompute_text(plan),
                  plan.batch.micro)};
  std::string host = fmt::format("feed {} ({} slots x {})", format_bytes(m.feed_bytes), plan.feed_slots,
                                 format_bytes(plan.sample_bytes));
  if (m.offload_bytes == 0)
    host += fmt::format(" + snapshot {} ({})", format_bytes(m.snapshot_bytes), saved_note(plan, job));
  if (m.reference_bytes > 0) host += fmt::format(" + reference policy {} (kl_beta)", format_bytes(m.reference_bytes));
  if (m.offload_bytes > 0)
    notes.push_back(fmt::format("offloaded to disk: {} + snapshot {}", format_bytes(m.offload_bytes),
                                format_bytes(m.snapshot_bytes)));
  if (devices) {
    const auto& node = plan.nodes[static_cast<std::size_t>(actors.front()->node)];
    const std::int64_t device = actors.front()->devices.front();
    const std::int64_t memory = node.devices[static_cast<std::size_t>(device)].memory_bytes;
    const std::int64_t free = memory - device_load(plan, actors.front()->node, device);
    notes.push_back(fmt::format("+ 6 % margin {} = {} of {} per GPU ({:.0f}%)  fits, {} free",
                                format_bytes(m.margin_bytes), format_bytes(m.engine_bytes()), format_bytes(memory),
                                100.0 * static_cast<double>(m.engine_bytes()) / static_cast<double>(memory),
                                format_bytes(free)));
    notes.push_back(fmt::format("host {} per rank: {}", format_bytes(m.host_bytes()), host));
  } else {
    notes.push_back(fmt::format("+ {} = {} per rank", host, format_bytes(m.total())));
    if (const std::int64_t threads = actors.front()->threads; threads > 1)
      notes.push_back(fmt::format("on {} threads", threads));
  }
  return block("learner", actors, places(plan, actors), fmt::format("states {}", format_bytes(m.shard_bytes)), notes);
}

std::string pool_block(const Plan& plan, const JobConfig& job, const std::string& role) {
  const auto actors = actors_of(plan, role);
  if (actors.empty()) return {};
  const auto found = job.cluster.elastic.find(role);
  const ElasticConfig bounds = found == job.cluster.elastic.end() ? ElasticConfig{} : found->second;
  return block(role, actors, places(plan, actors),
               fmt::format("host {}{}", format_bytes(actors.front()->memory_bytes), actors.size() == 1 ? "" : " each"),
               {fmt::format("{}{}{}; elastic {} to {}", actors.front()->isolation, device_note(*actors.front()),
                            role == RoleKind::rollout && steps_inline(job) ? ", steps its environments itself" : "",
                            bounds.min, bounds.max)});
}

std::string evaluator_block(const Plan& plan, const JobConfig& job) {
  const auto actors = actors_of(plan, "evaluator");
  if (actors.empty()) return {};
  const std::string often =
      job.eval.every > 0 ? fmt::format("every {} steps and ", format_grouped(job.eval.every)) : "";
  return block("evaluator", actors, places(plan, actors),
               fmt::format("host {}", format_bytes(actors.front()->memory_bytes)),
               {fmt::format("{}{}; {} episodes {}after the last step, beside training", actors.front()->isolation,
                            device_note(*actors.front()), format_grouped(job.eval.episodes), often)});
}

std::string checkpointer_block(const Plan& plan, const JobConfig& job) {
  const auto actors = actors_of(plan, "checkpointer");
  const std::int64_t disk = plan.disk_bytes_per_checkpoint;
  return block(
      "checkpointer", actors, places(plan, actors), fmt::format("host {}", format_bytes(actors.front()->memory_bytes)),
      {fmt::format("every {} steps, {} = {} on disk, keep {}{} -> {}", format_grouped(job.checkpoint.interval),
                   saved_note(plan, job), format_bytes(disk), job.checkpoint.keep,
                   job.checkpoint.keeps_best() ? " and the best" : "", format_bytes(disk * job.checkpoint.kept()))});
}

// Of an off-policy job: what its replay log takes on disk.
std::string replay_log_line(const Plan& plan, const JobConfig& job) {
  const std::int64_t most = replay_log_bytes(job, plan.sample_bytes);
  if (most == 0) return {};
  const std::int64_t unlimited = unlimited_replay_log_bytes(job, plan.sample_bytes);
  const std::string limit =
      most < unlimited
          ? fmt::format(", algorithm.sac.replay_log_bytes, where the buffer needs {}", format_bytes(unlimited))
          : "";
  return fmt::format("  {:<13} at most {} on disk{}; at most {} per million transitions\n", "replay log",
                     format_bytes(most), limit, format_bytes(replay_log_bytes_per_million(job, plan.sample_bytes)));
}

std::string batch_line(const Plan& plan, const JobConfig& job) {
  const BatchPlan& b = plan.batch;
  if (job.job.kind != JobKind::rl) {
    return fmt::format("  {:<13} {} x {} x accum {} = {} samples/step; {} steps = {} samples\n", "batch", b.micro,
                       b.data_ranks, b.accumulation, format_grouped(b.global), format_grouped(job.training.steps),
                       format_grouped(job.training.steps * b.global));
  }
  const RlShape shape = rl_shape(job);
  return fmt::format(
      "  {:<13} {} blocks x {} environments x {} control steps x {} = {} environment steps; {} steps = {}\n", "batch",
      shape.blocks, shape.envs, shape.calls * shape.exec_steps, shape.rounds_per_step,
      format_grouped(shape.env_steps_per_step()), format_grouped(job.training.steps),
      format_grouped(job.training.steps * shape.env_steps_per_step()));
}

// Of a job of reinforcement learning: what a policy call answers, and whether others are simulated meanwhile.
std::string policy_calls_line(const Plan& plan, const JobConfig& job) {
  if (job.job.kind != JobKind::rl) return {};
  const std::int64_t together = job.rollout.batch_blocks, blocks = rl_shape(job).blocks,
                     workers = std::max<std::int64_t>(1, static_cast<std::int64_t>(actors_of(plan, "rollout").size())),
                     of_each = (blocks + workers - 1) / workers;
  const std::string size = together == 0   ? "all blocks that wait"
                           : together == 1 ? "one block"
                                           : fmt::format("{} blocks", together);
  std::string turns;
  if (steps_inline(job)) {
    turns = "a rollout worker steps and answers its blocks in turn";
  } else if (of_each > std::max<std::int64_t>(1, together)) {
    turns = fmt::format("a rollout worker has {}: some are simulated while others are answered (double buffering)",
                        of_each);
  } else {
    turns = fmt::format(
        "a rollout worker has {}, and waits while they are simulated; with env.blocks={} it would answer others "
        "meanwhile",
        of_each, 2 * workers * std::max<std::int64_t>(1, together));
  }
  return fmt::format("  {:<13} each answers {}; {}\n", "policy calls", size, turns);
}

// One line per (from role, to role, transport).
std::string stream_lines(const Plan& plan) {
  std::map<std::tuple<std::string, std::string, std::string>, std::vector<const PlannedStream*>> groups;
  for (const PlannedStream& s : plan.streams) groups[{role_of(s.from), role_of(s.to), s.transport}].push_back(&s);
  std::string text;
  for (const auto& [key, streams] : groups) {
    const auto& [from, to, transport] = key;
    text += fmt::format("  {:<13} {} -> {}: {} x {}, {} slot{} of {}\n", text.empty() ? "streams" : "", from, to,
                        streams.size(), transport, streams.front()->slots, streams.front()->slots == 1 ? "" : "s",
                        format_bytes(streams.front()->slot_bytes));
  }
  return text;
}

std::string node_lines(const Plan& plan) {
  std::string text;
  const auto loads = node_loads(plan);
  for (std::size_t n = 0; n < plan.nodes.size(); ++n) {
    const NodeSnapshot& node = plan.nodes[n];
    std::string devices;
    if (!node.devices.empty()) {
      const auto peak = bf16_peak_tflops(node.devices[0].model);
      devices =
          fmt::format(", {} x {} {}{}", node.devices.size(), node.devices[0].model,
                      format_bytes(node.devices[0].memory_bytes), peak ? fmt::format(" ({} TFLOP/s bf16)", *peak) : "");
    }
    text += fmt::format("  {:<13} {} ({}): cpus {} of {}, host {} of {}{}\n", n == 0 ? "nodes" : "", n, node.name,
                        format_cpus(loads[n].cpus), node.cpus, format_bytes(loads[n].memory_bytes),
                        format_bytes(node.memory_bytes), devices);
  }
  return text;
}

}  // namespace

std::string to_table(const Plan& plan, const JobConfig& job) {
  std::string text = fmt::format(fmt::runtime(kRow), "actor", "count", "where", "cpus", "memory", "notes");
  text += learner_block(plan, job);
  for (const std::string& role : elastic_roles(job)) text += pool_block(plan, job, role);
  text += evaluator_block(plan, job) + checkpointer_block(plan, job) + replay_log_line(plan, job) +
          batch_line(plan, job) + policy_calls_line(plan, job);
  text += fmt::format("  {:<13} {} over {} rank{}\n", "collective", plan.collective, plan.batch.data_ranks,
                      plan.batch.data_ranks == 1 ? "" : "s");
  if (!plan.products.empty()) text += fmt::format("  {:<13} {} (bf16)\n", "products", plan.products);
  text += stream_lines(plan) + node_lines(plan);
  for (const std::string& warning : plan.warnings) text += "  warning       " + warning + "\n";
  return text;
}

}  // namespace troupe::placement
