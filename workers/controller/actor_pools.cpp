#include "workers/controller/actor_pools.h"

#include <fmt/format.h>

#include <algorithm>

#include "comm/control/actor_identity.h"
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

/// Whether a process or actor of it exists, as far as is known.
bool is_hosted(const ActorRecord& actor) {
  return actor.state == ActorState::starting || actor.state == ActorState::up || actor.state == ActorState::stopping;
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
  const auto outcome = scale_pool(plan_, cluster(), job_, request.pool, request.target);
  if (const auto* infeasible = std::get_if<Infeasible>(&outcome)) {
    return {.code = 3, .text = fmt::format("{}", fmt::join(infeasible->reasons, "\n"))};
  }
  Plan plan = std::get<Plan>(outcome);
  plan.nodes = cluster_.nodes;
  const std::string change = diff(plan_, plan);
  if (request.dry_run) return {.code = 0, .text = change};
  plan.revision = plan_.revision + 1;
  change_actors(plan, now);
  plan_ = std::move(plan);
  effects_.record([&db = db_, revision = plan_.revision, json = to_json(plan_), request]() -> Result<void> {
    TROUPE_TRY(db.add_plan(revision, json));
    return db.set_pool(request.pool, request.target);
  });
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

void ActorPools::give_up(ActorRecord& actor) {
  given_up_.emplace(actor.instance(), actor.plan);
  actor.removing = true;
  std::erase_if(plan_.actors, [&](const PlannedActor& planned) { return planned.name == actor.plan.name; });
  record_plan();
}

ClusterSnapshot ActorPools::cluster() const {
  ClusterSnapshot offered = cluster_;
  for (const auto& [instance, held] : given_up_) {
    NodeSnapshot& node = offered.nodes.at(static_cast<std::size_t>(held.node));
    node.memory_bytes = std::max<std::int64_t>(0, node.memory_bytes - held.memory_bytes);
  }
  for (const auto* ranks : {&lost_, &suspect_}) {
    for (const std::int64_t rank : *ranks) {
      NodeSnapshot& node = offered.nodes.at(static_cast<std::size_t>(rank));
      node.cpus = node.memory_bytes = 0;
    }
  }
  return offered;
}

void ActorPools::record_plan() {
  plan_.nodes = cluster_.nodes;
  ++plan_.revision;
  effects_.record(
      [&db = db_, revision = plan_.revision, json = to_json(plan_)] { return db.add_plan(revision, json); });
}

void ActorPools::node_joined(const NodeSnapshot& node, std::int64_t rank, const std::vector<std::string>& running,
                             bool is_new_process, bool spawns, TimePoint now) {
  if (static_cast<std::int64_t>(cluster_.nodes.size()) <= rank)
    cluster_.nodes.resize(static_cast<std::size_t>(rank) + 1);
  cluster_.nodes[static_cast<std::size_t>(rank)] = node;
  lost_.erase(rank);
  suspect_.erase(rank);
  effects_.event(Severity::info, "node_joined",
                 fmt::format("node {} joined as node/{} with {} cpus", node.name, rank, node.cpus));
  std::set<std::string> there(running.begin(), running.end());
  if (!is_new_process) there.merge(left_behind_[rank]);
  left_behind_.erase(rank);
  for (const std::string& instance : there) {
    const ActorRecord* actor = actors_.find(name_without_life(instance));
    const bool has_its_place = actor && actor->instance() == instance && actor->plan.node == rank && is_hosted(*actor);
    if (!has_its_place) launcher_.end_left_over(rank, instance);
  }
  if (spawns && place_waiting(now)) record_plan();
}

void ActorPools::node_suspected(std::int64_t rank, bool is_suspect) {
  if (is_suspect) {
    suspect_.insert(rank);
    effects_.event(Severity::warn, "node_suspect",
                   fmt::format("nothing is heard of node/{}; nothing new is placed there", rank));
  } else {
    suspect_.erase(rank);
    effects_.event(Severity::info, "node_heard", fmt::format("node/{} is heard again", rank));
  }
}

Result<void> ActorPools::node_lost(std::int64_t rank, bool spawns, std::uint64_t fence, TimePoint now) {
  if (rank < 0 || rank >= static_cast<std::int64_t>(cluster_.nodes.size())) return {};
  effects_.event(Severity::warn, "node_lost",
                 fmt::format("node/{} ({}) is lost", rank, cluster_.nodes[static_cast<std::size_t>(rank)].name));
  lost_.insert(rank);
  suspect_.erase(rank);
  std::erase_if(given_up_, [&](const auto& entry) { return entry.second.node == rank; });
  std::vector<std::string> hosted;
  for (const auto& [name, actor] : actors_.rows()) {
    if (actor.plan.node == rank) hosted.push_back(name);
  }
  Result<void> outcome;
  bool moves = false;
  for (const std::string& name : hosted) {
    ActorRecord& actor = *actors_.find(name);
    // Its slots are safe: another host's feeder never writes this host's arenas itself.
    producer_gone(actor.plan.role, actor.instance(), fence);
    effects_.actor_ended(actor.instance());
    if (is_hosted(actor)) left_behind_[rank].insert(actor.instance());
    if (!is_elastic(actor.plan.role)) {
      actor.state = ActorState::gone;
      outcome = Error{Errc::unavailable, fmt::format("{} ran on the lost node/{}", name, rank)};
    } else if (actor.removing) {
      removed(name);
    } else if (!spawns) {
      actor.state = ActorState::gone;
    } else {
      actor.state = ActorState::planned;
      actor.restart_at.reset();
      actor.waits_for_room = moves = true;
    }
  }
  if (!outcome || !moves) return outcome;
  place_waiting(now);
  for (const auto& [name, actor] : actors_.rows()) {
    if (actor.waits_for_room && actor.plan.node == rank)
      effects_.event(Severity::warn, "no_room", fmt::format("no node has room for {}; it waits", name));
  }
  record_plan();
  return {};
}

bool ActorPools::place_waiting(TimePoint now) {
  bool placed = false;
  for (auto& [name, actor] : actors_.rows()) {
    if (!actor.waits_for_room) continue;
    Plan others = plan_;
    others.nodes = cluster().nodes;
    std::erase_if(others.actors, [&](const PlannedActor& a) {
      const ActorRecord* row = actors_.find(a.name);
      return row && row->waits_for_room;
    });
    const auto node = node_with_room(others, actor.plan);
    if (!node) continue;
    effects_.event(Severity::warn, "moved", fmt::format("{} moves to node/{}", name, *node));
    actor.plan.node = *node;
    for (PlannedActor& planned : plan_.actors) {
      if (planned.name == name) planned.node = *node;
    }
    launcher_.spawn(actor, now);
    placed = true;
  }
  return placed;
}

Result<void> ActorPools::watch(TimePoint now) {
  if (place_waiting(now)) record_plan();
  for (const std::string& role : elastic_roles(job_)) {
    const auto rows = actors_.of_role(role);
    const bool is_empty = !rows.empty() && std::all_of(rows.begin(), rows.end(), [](const ActorRecord* row) {
      return row->waits_for_room || row->state == ActorState::gone;
    });
    if (!is_empty) {
      empty_since_.erase(role);
      continue;
    }
    const TimePoint since = empty_since_.try_emplace(role, now).first->second;
    if (now - since <= job_.cluster.start_timeout) continue;
    return Error{Errc::unavailable,
                 fmt::format("for {} s no node has had room for any {}; join another node, or make cluster."
                             "start_timeout_s longer",
                             job_.cluster.start_timeout.count(), role)};
  }
  return {};
}

// ---- who dials whom -----------------------------------------------------------------------------------------------

void ActorPools::producer_gone(const std::string& role, const std::string& instance, std::uint64_t fence, bool died) {
  Peers peers{.fence = fence, .gone = {instance}};
  if (died) peers.died = {instance};
  for (const Flow& flow : flows(job_)) {
    if (flow.producer != role) continue;
    for (const ActorRecord* consumer : actors_.of_role(flow.consumer)) {
      if (consumer->state == ActorState::up) effects_.send(consumer->plan.name, peers);
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
      if (!is_hosted(*consumer)) continue;  // its addresses are those of its last start
      // The first address is for producers on the consumer's node, the one over zmq for those elsewhere.
      const bool local = consumer->plan.node == producer.plan.node;
      for (const std::string& address : flow.weights ? consumer->weights : consumer->channels) {
        if (local == !address.starts_with("zmq:")) {
          peers.channels.push_back(address);
          if (flow.consumer == RoleKind::evaluator) peers.evaluators.push_back(address);
          break;
        }
      }
    }
  }
  effects_.send(producer.plan.name, peers);
}

}  // namespace troupe::workers
