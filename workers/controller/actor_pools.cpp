#include "workers/controller/actor_pools.h"

#include <fmt/format.h>

#include <set>

#include "placement/render.h"
#include "placement/roles.h"
#include "placement/scale.h"

namespace troupe::workers {

namespace {

std::set<std::string> names_of(const Plan& plan) {
  std::set<std::string> names;
  for (const PlannedActor& actor : plan.actors) names.insert(actor.name);
  return names;
}

}  // namespace

ActorPools::ActorPools(const JobConfig& job, Plan plan, ActorTable& actors, ActorLauncher& launcher, StateDb& db,
                       ControllerEffects& effects)
    : job_(job),
      plan_(std::move(plan)),
      cluster_{plan_.nodes},
      actors_(actors),
      launcher_(launcher),
      db_(db),
      effects_(effects) {}

// ---- sizes and nodes ----------------------------------------------------------------------------------------------

Reply ActorPools::scale(const Scale& request, TimePoint now) {
  const auto outcome = scale_pool(plan_, cluster_, job_, request.pool, request.target);
  if (const auto* infeasible = std::get_if<Infeasible>(&outcome)) {
    return {.code = 3, .text = fmt::format("{}", fmt::join(infeasible->reasons, "\n"))};
  }
  Plan plan = std::get<Plan>(outcome);
  const std::string change = diff(plan_, plan);
  if (request.dry_run) return {.code = 0, .text = change};
  plan.revision = plan_.revision + 1;
  if (auto written = db_.add_plan(plan.revision, to_json(plan)); !written)
    return {.code = 4, .text = written.error().message()};
  if (auto written = db_.set_pool(request.pool, request.target); !written)
    return {.code = 4, .text = written.error().message()};
  change_actors(plan, now);
  plan_ = std::move(plan);
  effects_.event(Severity::info, "scaled", fmt::format("{} is now {} by request", request.pool, request.target));
  return {.code = 0, .text = change};
}

void ActorPools::change_actors(const Plan& next, TimePoint now) {
  const auto before = names_of(plan_), after = names_of(next);
  for (const PlannedActor& actor : next.actors) {
    if (before.count(actor.name)) continue;
    actors_.add(actor);
    ActorRecord& row = *actors_.find(actor.name);
    row.removing = false;
    launcher_.spawn(row, now);
  }
  for (const std::string& name : before) {
    ActorRecord* row = after.count(name) ? nullptr : actors_.find(name);
    if (!row) continue;
    row->removing = true;
    launcher_.stop(*row, kStopGrace, "scaled down");
    if (row->state == ActorState::planned) actors_.erase(name);
  }
}

void ActorPools::removed(const std::string& actor) {
  effects_.event(Severity::info, "scaled_down", fmt::format("{} left", actor));
  actors_.erase(actor);
}

void ActorPools::node_joined(const NodeSnapshot& node, std::int64_t rank) {
  if (static_cast<std::int64_t>(cluster_.nodes.size()) <= rank)
    cluster_.nodes.resize(static_cast<std::size_t>(rank) + 1);
  cluster_.nodes[static_cast<std::size_t>(rank)] = node;
  effects_.event(Severity::info, "node_joined",
                 fmt::format("node {} joined as node/{} with {} cpus", node.name, rank, node.cpus));
}

Result<void> ActorPools::node_lost(std::int64_t rank, bool spawns, std::uint64_t fence, TimePoint now) {
  if (rank < 0 || rank >= static_cast<std::int64_t>(cluster_.nodes.size())) return {};
  NodeSnapshot& node = cluster_.nodes[static_cast<std::size_t>(rank)];
  effects_.event(Severity::warn, "node_lost", fmt::format("node/{} ({}) is lost", rank, node.name));
  node.cpus = 0;
  std::vector<std::string> lost;
  for (const auto& [name, actor] : actors_.rows()) {
    if (actor.plan.node == rank) lost.push_back(name);
  }
  for (const std::string& name : lost) {
    ActorRecord& actor = *actors_.find(name);
    if (!is_elastic(actor.plan.role))
      return Error{Errc::unavailable, fmt::format("{} ran on the lost node/{}", name, rank)};
    // Its slots are safe: another host's feeder never writes this host's arenas itself.
    producer_gone(actor.plan.role, actor.instance(), fence);
    if (actor.removing) {
      removed(name);
      continue;
    }
    actor.plan.node = 0;
    effects_.event(Severity::warn, "moved", fmt::format("{} moves to node/0", name));
    if (spawns) {
      launcher_.spawn(actor, now);
    } else {
      actor.state = ActorState::gone;
    }
  }
  return {};
}

// ---- who dials whom -----------------------------------------------------------------------------------------------

void ActorPools::producer_gone(const std::string& role, const std::string& instance, std::uint64_t fence) {
  for (const Flow& flow : flows(job_)) {
    if (flow.producer != role) continue;
    for (const ActorRecord* consumer : actors_.of_role(flow.consumer)) {
      if (consumer->state == ActorState::up)
        effects_.send(consumer->plan.name, Peers{.fence = fence, .gone = {instance}});
    }
  }
}

void ActorPools::producer_unkillable(const std::string& instance, std::uint64_t fence) {
  for (const ActorRecord* learner : actors_.of_role("learner")) {
    if (learner->state == ActorState::up)
      effects_.send(learner->plan.name, Peers{.fence = fence, .unkillable = {instance}});
  }
}

void ActorPools::introduce(const ActorRecord& actor, std::uint64_t fence) {
  bool produces = false;
  for (const Flow& flow : flows(job_)) {
    produces |= flow.producer == actor.plan.role;
    // a learner that comes up forms a group, which tells its producers
    if (flow.consumer != actor.plan.role || flow.consumer == RoleKind::learner) continue;
    for (const ActorRecord* producer : actors_.of_role(flow.producer)) {
      if (producer->state == ActorState::up) send_peers(*producer, fence);
    }
  }
  if (produces) send_peers(actor, fence);
}

void ActorPools::introduce_all(std::uint64_t fence) {
  std::set<std::string> told;
  for (const Flow& flow : flows(job_)) {
    if (!told.insert(flow.producer).second) continue;
    for (const ActorRecord* producer : actors_.of_role(flow.producer)) {
      if (producer->state == ActorState::up) send_peers(*producer, fence);
    }
  }
}

void ActorPools::send_peers(const ActorRecord& producer, std::uint64_t fence) {
  Peers peers{.fence = fence};
  for (const Flow& flow : flows(job_)) {
    if (flow.producer != producer.plan.role) continue;
    for (const ActorRecord* consumer : actors_.of_role(flow.consumer)) {
      // The first address is for producers on the consumer's node, the one over zmq for those elsewhere.
      const bool local = consumer->plan.node == producer.plan.node;
      for (const std::string& address : flow.weights ? consumer->weights : consumer->channels) {
        if (local == !address.starts_with("zmq:")) {
          peers.channels.push_back(address);
          break;
        }
      }
    }
  }
  effects_.send(producer.plan.name, peers);
}

}  // namespace troupe::workers
