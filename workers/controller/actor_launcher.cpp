#include "workers/controller/actor_launcher.h"

#include <fmt/format.h>

#include "comm/control/actor_identity.h"

namespace troupe::workers {

ActorLauncher::ActorLauncher(const ClusterConfig& cluster, ActorTable& actors, ControllerEffects& effects)
    : actors_(actors), effects_(effects) {
  for (const NodeGroupConfig& group : cluster.node_groups) {
    for (const auto& [key, value] : group.env) environment_[key] = value;
  }
}

void ActorLauncher::spawn(ActorRecord& actor, TimePoint now) {
  actor.incarnation = actors_.next_incarnation(actor.plan.name);
  actor.state = ActorState::starting;
  actor.restart_at.reset();
  actor.waits_for_room = false;
  actor.channels.clear();
  actor.weights.clear();
  actor.since = now;
  effects_.send(fmt::format("node/{}", actor.plan.node), Spawn{.actor = actor.plan.name,
                                                               .role = actor.plan.role,
                                                               .incarnation = actor.incarnation,
                                                               .isolation = actor.plan.isolation,
                                                               .cpus = static_cast<std::int64_t>(actor.plan.cpus),
                                                               .env = environment_});
}

void ActorLauncher::stop(ActorRecord& actor, std::chrono::milliseconds grace, const std::string& reason) {
  if (actor.state != ActorState::up && actor.state != ActorState::starting) return;
  actor.state = ActorState::stopping;
  send_stop(actor, grace, reason);
}

void ActorLauncher::stop_all(const std::string& role, const std::string& reason) {
  for (ActorRecord* actor : actors_.of_role(role)) {
    actor->restart_at.reset();
    actor->waits_for_room = false;
    if (actor->state == ActorState::planned) actor->state = ActorState::gone;
    stop(*actor, kStopGrace, reason);
  }
}

void ActorLauncher::kill_stopping(const std::string& reason) {
  for (const auto& [name, actor] : actors_.rows()) {
    if (actor.state == ActorState::stopping) send_stop(actor, std::chrono::milliseconds(0), reason);
  }
}

void ActorLauncher::end_left_over(std::int64_t node, const std::string& instance) {
  const auto identity = ActorIdentity::parse(instance);
  if (!identity) return;  // what has no such name was never started by a controller
  effects_.event(Severity::info, "left_over",
                 fmt::format("{} has its place elsewhere now; on node/{} it is killed", instance, node));
  effects_.send(fmt::format("node/{}", node), Stop{.actor = identity->actor,
                                                   .incarnation = identity->incarnation,
                                                   .grace_ms = 0,
                                                   .reason = "its place is elsewhere"});
}

void ActorLauncher::send_stop(const ActorRecord& actor, std::chrono::milliseconds grace, const std::string& reason) {
  effects_.send(
      fmt::format("node/{}", actor.plan.node),
      Stop{.actor = actor.plan.name, .incarnation = actor.incarnation, .grace_ms = grace.count(), .reason = reason});
}

}  // namespace troupe::workers
