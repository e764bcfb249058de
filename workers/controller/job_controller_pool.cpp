// Elastic pools, nodes that come and go, and the status report of a job.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "placement/render.h"
#include "placement/roles.h"
#include "placement/scale.h"
#include "workers/controller/job_controller.h"

namespace troupe::workers {

namespace {

std::set<std::string> names_of(const Plan& plan) {
  std::set<std::string> names;
  for (const PlannedActor& actor : plan.actors) names.insert(actor.name);
  return names;
}

}  // namespace

Reply JobController::scale(const Scale& request, TimePoint now) {
  if (state_ == JobState::stopping || exit_code()) return {.code = 3, .text = "the job is ending"};
  const auto outcome = scale_pool(setup_.plan, cluster_, setup_.config, request.pool, request.target);
  if (const auto* infeasible = std::get_if<Infeasible>(&outcome)) {
    return {.code = 3, .text = fmt::format("{}", fmt::join(infeasible->reasons, "\n"))};
  }
  Plan plan = std::get<Plan>(outcome);
  const std::string change = diff(setup_.plan, plan);
  if (request.dry_run) return {.code = 0, .text = change};
  plan.revision = setup_.plan.revision + 1;
  if (auto written = db_.add_plan(plan.revision, to_json(plan)); !written)
    return {.code = 4, .text = written.error().message()};
  if (auto written = db_.set_pool(request.pool, request.target); !written)
    return {.code = 4, .text = written.error().message()};
  const auto before = names_of(setup_.plan), after = names_of(plan);
  for (const PlannedActor& actor : plan.actors) {
    if (before.count(actor.name)) continue;
    actors_.add(actor);
    ActorRecord& row = *actors_.find(actor.name);
    row.removing = false;
    spawn(row, now);
  }
  for (const std::string& name : before) {
    ActorRecord* row = after.count(name) ? nullptr : actors_.find(name);
    if (!row) continue;
    row->removing = true;
    if (row->state == ActorState::up || row->state == ActorState::starting) {
      row->state = ActorState::stopping;
      stop(*row, kStopGrace, "scaled down");
    } else if (row->state == ActorState::planned) {
      actors_.erase(name);
    }
  }
  setup_.plan = std::move(plan);
  effects_.event(Severity::info, "scaled", fmt::format("{} is now {} by request", request.pool, request.target));
  return {.code = 0, .text = change};
}

void JobController::node_joined(const NodeSnapshot& node, std::int64_t rank) {
  if (static_cast<std::int64_t>(cluster_.nodes.size()) <= rank)
    cluster_.nodes.resize(static_cast<std::size_t>(rank) + 1);
  cluster_.nodes[static_cast<std::size_t>(rank)] = node;
  effects_.event(Severity::info, "node_joined",
                 fmt::format("node {} joined as node/{} with {} cpus", node.name, rank, node.cpus));
}

void JobController::node_lost(std::int64_t rank, TimePoint now) {
  if (rank < 0 || rank >= static_cast<std::int64_t>(cluster_.nodes.size())) return;
  NodeSnapshot& node = cluster_.nodes[static_cast<std::size_t>(rank)];
  effects_.event(Severity::warn, "node_lost", fmt::format("node/{} ({}) is lost", rank, node.name));
  node.cpus = 0;
  std::vector<std::string> lost;
  for (const auto& [name, actor] : actors_.rows()) {
    if (actor.plan.node == rank) lost.push_back(name);
  }
  for (const std::string& name : lost) {
    ActorRecord& actor = *actors_.find(name);
    if (!is_elastic(actor.plan.role)) {
      fail(fmt::format("{} ran on the lost node/{}", name, rank), now);
      return;
    }
    // Its slots are safe: another host's feeder never writes this host's arenas itself.
    producer_gone(actor.plan.role, actor.instance());
    actor.plan.node = 0;
    effects_.event(Severity::warn, "moved", fmt::format("{} moves to node/0", name));
    if (state_ != JobState::stopping) {
      spawn(actor, now);
    } else {
      actor.state = ActorState::gone;
    }
  }
}

std::string JobController::status_json(TimePoint now) const {
  using nlohmann::json;
  json actors = json::array();
  std::map<std::string, std::int64_t> up, planned;
  for (const auto& [name, row] : actors_.rows()) {
    if (row.state == ActorState::up) ++up[row.plan.role];
    if (!row.removing) ++planned[row.plan.role];
    actors.push_back({{"name", name},
                      {"role", row.plan.role},
                      {"node", row.plan.node},
                      {"state", to_string(row.state)},
                      {"pid", row.pid},
                      {"incarnation", row.incarnation},
                      {"restarts", row.restarts},
                      {"isolation", row.plan.isolation},
                      {"seconds_in_state", std::chrono::duration<double>(now - row.since).count()}});
  }
  json pools = json::object();
  for (const auto& [role, count] : planned) pools[role] = {{"target", count}, {"up", up[role]}};
  json nodes = json::array();
  for (const NodeSnapshot& node : cluster_.nodes) nodes.push_back({{"name", node.name}, {"cpus", node.cpus}});
  const json status = {{"job", setup_.config.job.name},
                       {"run", setup_.run.root()},
                       {"state", to_string(state_)},
                       {"step", step_},
                       {"steps", setup_.config.training.steps},
                       {"fence", fence_},
                       {"committed_step", checkpoints_.committed_step()},
                       {"restarts", restarts_},
                       {"void_samples", void_samples()},
                       {"actors", actors},
                       {"pools", pools},
                       {"nodes", nodes},
                       {"metrics", last_metrics_},
                       {"bytes", learner_bytes_}};
  return status.dump(2);
}

}  // namespace troupe::workers
