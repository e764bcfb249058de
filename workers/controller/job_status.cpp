#include "workers/controller/job_status.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/seconds.h"

namespace troupe::workers {

std::string status_json(const JobStatus& status, const ActorTable& actors, const ClusterSnapshot& cluster,
                        std::chrono::steady_clock::time_point now) {
  using nlohmann::json;
  json rows = json::array();
  std::map<std::string, std::int64_t> up, planned;
  for (const auto& [name, row] : actors.rows()) {
    if (row.state == ActorState::up) ++up[row.plan.role];
    if (!row.removing) ++planned[row.plan.role];
    rows.push_back({{"name", name},
                    {"role", row.plan.role},
                    {"node", row.plan.node},
                    {"state", enum_name(row.state)},
                    {"pid", row.pid},
                    {"incarnation", row.incarnation},
                    {"restarts", row.restarts},
                    {"isolation", row.plan.isolation},
                    {"seconds_in_state", Seconds(now - row.since).count()}});
  }
  json pools = json::object();
  for (const auto& [role, count] : planned) pools[role] = {{"target", count}, {"up", up[role]}};
  json nodes = json::array();
  for (const NodeSnapshot& node : cluster.nodes) nodes.push_back({{"name", node.name}, {"cpus", node.cpus}});
  const json all = {{"job", status.job},
                    {"run", status.run},
                    {"state", enum_name(status.state)},
                    {"step", status.step},
                    {"steps", status.steps},
                    {"fence", status.fence},
                    {"committed_step", status.committed_step},
                    {"restarts", status.restarts},
                    {"void_samples", status.void_samples},
                    {"actors", rows},
                    {"pools", pools},
                    {"nodes", nodes},
                    {"metrics", status.metrics},
                    {"bytes", status.bytes}};
  return all.dump(2);
}

std::string memory_text(const MemoryTable& planned, const std::map<std::string, std::int64_t>& measured) {
  const auto mib = [](std::int64_t bytes) { return static_cast<double>(bytes) / (1 << 20); };
  const auto of = [&](const char* kind) { return measured.count(kind) ? mib(measured.at(kind)) : 0.0; };
  const auto part = [&](const char* kind, std::int64_t plan) {
    return fmt::format("{} {:.1f} MiB (plan {:.1f})", kind, of(kind), mib(plan));
  };
  return fmt::format("memory per rank: {}, {}, {}; process {:.0f} MiB resident", part("shards", planned.shard_bytes),
                     part("slots", planned.param_slot_bytes), part("gradients", planned.grad_slot_bytes),
                     of("process"));
}

}  // namespace troupe::workers
