#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "placement/format.h"
#include "placement/recompute_plan.h"
#include "placement/render.h"

namespace troupe::placement {

namespace {

/// Collects "field old->new" parts of one line.
class Changes {
 public:
  void add(const char* field, const std::string& before, const std::string& after) {
    if (before == after) return;
    text_ += fmt::format("{}{} {}->{}", text_.empty() ? "" : ", ", field, before, after);
  }
  void add(const char* field, std::int64_t before, std::int64_t after) {
    add(field, std::to_string(before), std::to_string(after));
  }
  void add_bytes(const char* field, std::int64_t before, std::int64_t after) {
    if (before == after) return;
    const std::string old_text = format_bytes(before), new_text = format_bytes(after);
    // Small changes would print the same rounded figure twice.
    if (old_text == new_text) return add(field, fmt::format("{} B", before), fmt::format("{} B", after));
    add(field, old_text, new_text);
  }
  std::string line(const std::string& who) const {
    return text_.empty() ? std::string() : fmt::format("~ {}: {}\n", who, text_);
  }

 private:
  std::string text_;
};

std::string devices_text(const PlannedActor& a) { return fmt::format("[{}]", fmt::join(a.devices, ",")); }

std::string place(const Plan& plan, const PlannedActor& a) {
  std::string text = fmt::format("node {} ({})", a.node, plan.nodes[static_cast<std::size_t>(a.node)].name);
  if (!a.devices.empty()) text += fmt::format(" gpu {}", fmt::join(a.devices, ","));
  return text;
}

std::string diff_actors(const Plan& before, const Plan& after) {
  std::map<std::string, const PlannedActor*> old_actors;
  for (const PlannedActor& a : before.actors) old_actors[a.name] = &a;
  std::set<std::string> kept;
  std::string text;
  for (const PlannedActor& a : after.actors) {
    const auto found = old_actors.find(a.name);
    if (found == old_actors.end()) {
      text += fmt::format("+ {} on {}, {} cpu, {}\n", a.name, place(after, a), format_cpus(a.cpus),
                          format_bytes(a.memory_bytes));
      continue;
    }
    kept.insert(a.name);
    const PlannedActor& b = *found->second;
    Changes changes;
    changes.add("node", b.node, a.node);
    changes.add("gpus", devices_text(b), devices_text(a));
    changes.add("cpus", format_cpus(b.cpus), format_cpus(a.cpus));
    changes.add("threads", b.threads, a.threads);
    changes.add("isolation", b.isolation, a.isolation);
    changes.add_bytes("memory", b.memory_bytes, a.memory_bytes);
    changes.add_bytes("gpu memory", b.device_bytes, a.device_bytes);
    text += changes.line(a.name);
  }
  for (const PlannedActor& b : before.actors) {
    if (kept.count(b.name) == 0) text += fmt::format("- {} on {}\n", b.name, place(before, b));
  }
  return text;
}

std::string diff_nodes(const Plan& before, const Plan& after) {
  std::string text;
  const std::size_t most = std::max(before.nodes.size(), after.nodes.size());
  for (std::size_t n = 0; n < most; ++n) {
    if (n >= before.nodes.size()) {
      text += fmt::format("+ node {} ({})\n", n, after.nodes[n].name);
    } else if (n >= after.nodes.size()) {
      text += fmt::format("- node {} ({})\n", n, before.nodes[n].name);
    } else {
      Changes changes;
      changes.add("name", before.nodes[n].name, after.nodes[n].name);
      changes.add("cpus", before.nodes[n].cpus, after.nodes[n].cpus);
      changes.add("devices", static_cast<std::int64_t>(before.nodes[n].devices.size()),
                  static_cast<std::int64_t>(after.nodes[n].devices.size()));
      changes.add_bytes("memory", before.nodes[n].memory_bytes, after.nodes[n].memory_bytes);
      text += changes.line(fmt::format("node {}", n));
    }
  }
  return text;
}

// Streams of actors that are in both plans; those of new and removed actors come and go with them.
std::string diff_streams(const Plan& before, const Plan& after) {
  std::map<std::pair<std::string, std::string>, const PlannedStream*> old_streams;
  for (const PlannedStream& s : before.streams) old_streams[{s.from, s.to}] = &s;
  std::string text;
  for (const PlannedStream& s : after.streams) {
    const auto found = old_streams.find({s.from, s.to});
    if (found == old_streams.end()) continue;
    Changes changes;
    changes.add("transport", found->second->transport, s.transport);
    changes.add("slots", found->second->slots, s.slots);
    changes.add_bytes("slot", found->second->slot_bytes, s.slot_bytes);
    text += changes.line(s.from + " -> " + s.to);
  }
  return text;
}

}  // namespace

std::string diff(const Plan& before, const Plan& after) {
  std::string text = diff_nodes(before, after) + diff_actors(before, after) + diff_streams(before, after);
  Changes job, batch, memory;
  job.add("name", before.job, after.job);
  job.add("collective", before.collective, after.collective);
  job.add("sharding", before.sharding, after.sharding);
  job.add("activation_checkpoint", recompute_text(before), recompute_text(after));
  job.add("products", before.products, after.products);
  job.add("parameters", before.parameters, after.parameters);
  job.add("frozen_parameters", before.frozen_parameters, after.frozen_parameters);
  job.add_bytes("checkpoint", before.disk_bytes_per_checkpoint, after.disk_bytes_per_checkpoint);
  batch.add("global", before.batch.global, after.batch.global);
  batch.add("micro", before.batch.micro, after.batch.micro);
  batch.add("ranks", before.batch.data_ranks, after.batch.data_ranks);
  batch.add("accumulation", before.batch.accumulation, after.batch.accumulation);
  memory.add_bytes("engine", before.learner_memory.engine_bytes(), after.learner_memory.engine_bytes());
  memory.add_bytes("arenas", before.learner_memory.arena_bytes(), after.learner_memory.arena_bytes());
  memory.add_bytes("reference policy", before.learner_memory.reference_bytes, after.learner_memory.reference_bytes);
  return text + job.line("job") + batch.line("batch") + memory.line("learner memory");
}

}  // namespace troupe::placement
