#include <fmt/format.h>

#include <algorithm>

#include "tests/simulation/world.h"

namespace troupe::testing {

void World::begin_actor(const SimNode& node, const ActorIdentity& identity, const std::string& role,
                        NodeRole::OnEnd on_end) {
  if (!every_start_.insert(identity.instance()).second)
    breach(fmt::format("{} is started for the second time", identity.instance()));
  auto actor = std::make_shared<SimActor>();
  actor->identity = identity;
  actor->role = role;
  actor->node = node.host;
  actor->owner = node.process;
  actor->hosted = node.hosted;
  actor->agent = node.agent;
  actor->on_end = std::move(on_end);
  actor->process = std::make_shared<SimProcess>(node.host, OrderedDelivery::Limits{});
  actor->process->names[identity.instance()] = [this, weak = std::weak_ptr(actor)](const std::string& from,
                                                                                   const Message& message) {
    const auto held = weak.lock();
    if (!held || held->is_hung) return;
    note(from, held->identity.instance(), message);
    actor_hears(held, message);
  };
  actors_[identity.instance()] = actor;
  node.process->hosts.insert(identity.instance());
  wire_.add(actor->process);
  actor->is_hung = std::exchange(hangs_start_, false);
  in_actor(actor, Millis(50 + in(500)), [this, actor] {
    ActorUp up{.actor = actor->identity.actor, .incarnation = actor->identity.incarnation, .pid = 1};
    const std::string instance = actor->identity.instance();
    if (actor->role == "learner" || actor->role == "rollout") up.channels = {"shm:" + instance, "zmq:" + instance};
    if (actor->role == "rollout") up.weights = up.channels;
    if (actor->role == "evaluator") up.weights = {"shm:" + instance, "zmq:" + instance};
    say(actor, up);
    if (actor->role == "evaluator")
      evaluate(actor);
    else if (actor->role != "learner" && actor->role != "checkpointer")
      report_times(actor);
  });
}

void World::evaluate(const std::shared_ptr<SimActor>& actor) {
  if (actor->is_playing || due_ <= evaluated_) return;
  actor->is_playing = true;
  const auto [fence, step] = due_;
  EvalReport report{.actor = actor->identity.actor, .fence = fence, .step = step};
  say(actor, EvalBegun{.actor = report.actor, .fence = fence, .step = step});
  in_actor(actor, Millis(1000 + in(12'000)), [this, actor, report]() mutable {
    const double lost = in(8) == 0 ? 2 : 0;
    if (lost > 0) say(actor, Event{.actor = report.actor, .kind = "evaluation_failed", .text = "as scripted"});
    report.metrics = {{"eval/num_trajectories", 2 - lost}, {"eval/lost", lost}};
    if (lost == 0) report.metrics["eval/return"] = 1;
    say(actor, report);
    actor->is_playing = false;
    evaluated_ = {report.fence, report.step};
    evaluate(actor);
  });
}

void World::report_times(const std::shared_ptr<SimActor>& actor) {
  in_actor(actor, Millis(8000 + in(8000)), [this, actor] {
    say(actor, ProducerTimes{.actor = actor->identity.actor, .idle_seconds = 1, .busy_seconds = 2});
    if (actor->role == "rollout" && in(4) == 0)
      say(actor, Event{.actor = actor->identity.actor, .kind = "simulator_failed", .text = "made again"});
  });
}

void World::end_actor(const std::string& instance, const std::string& failure, Millis after) {
  clock_.after(after, [this, instance, failure] {
    const auto found = actors_.find(instance);
    if (found == actors_.end()) return;
    const auto actor = found->second;
    if (actor->survives_until > clock_.now())
      return end_actor(instance, failure, std::chrono::ceil<Millis>(actor->survives_until - clock_.now()));
    drop_actor(instance);
    wire_.run_in(actor->owner, [actor, failure] {
      actor->owner->hosts.erase(actor->identity.instance());
      actor->on_end(failure);
    });
  });
}

void World::end_process(const std::shared_ptr<SimActor>& actor, const ProcessExit& exit) {
  const ActorExited exited{.actor = actor->identity.actor,
                           .incarnation = actor->identity.incarnation,
                           .exit_code = exit.exit_code,
                           .signal = exit.signal,
                           .killed_by_us = exit.killed_by_us,
                           .stderr_tail = exit.stderr_tail,
                           .out_of_memory = exit.out_of_memory,
                           .unkillable = exit.unkillable};
  if (!exited.unkillable) drop_actor(actor->identity.instance());
  wire_.run_in(actor->owner, [this, actor, exited] {
    if (!exited.unkillable) {
      actor->owner->hosts.erase(actor->identity.instance());
      actor->hosted->remove(actor->identity.instance());
    }
    hold_message(actor->owner, "node", exited);
    wire_.send(actor->owner, actor->agent, "controller", exited);
  });
}

void World::drop_actor(const std::string& instance) {
  const auto found = actors_.find(instance);
  if (found == actors_.end()) return;
  const auto actor = found->second;
  actor->process->is_alive = false;
  actors_.erase(found);
  if (actor->role == "learner" && actor->is_in_group) break_group(actor->fence, Millis(20 + in(200)));
}

void World::in_actor(const std::shared_ptr<SimActor>& actor, Millis delay, std::function<void()> work) {
  clock_.after(delay, [this, actor, work = std::move(work)] {
    if (!actor->is_hung) wire_.run_in(actor->process, work);
  });
}

void World::say(const std::shared_ptr<SimActor>& actor, const Message& message) {
  hold_message(actor->process, actor->role, message);
  wire_.send(actor->process, actor->identity.instance(), "controller", message);
}

void World::hold_message(const std::shared_ptr<SimProcess>& process, const std::string& role, const Message& message) {
  if (held_messages_.empty()) return;
  static constexpr std::array kHeld{GroupUp::kType,        GroupUp::kType,    StepReport::kType, SnapshotReady::kType,
                                    SnapshotReady::kType,  GroupAbort::kType, ActorUp::kType,    ActorExited::kType,
                                    CheckpointDone::kType, Finished::kType,   Spawn::kType,      Stop::kType};
  const Fault fault = held_messages_.front();
  if (kHeld[fault.target % kHeld.size()] != type_of(message)) return;
  held_messages_.erase(held_messages_.begin());
  process->held_until = clock_.now() + fault.lasts;
  if (role != "learner" && role != "checkpointer") return;
  // The group is gone when these messages arrive.
  for (const auto& [instance, actor] : actors_) {
    if (actor->role == "learner" && actor->process != process)
      return end_actor(instance, "killed", Millis(5 + in(300)));
  }
}

void World::actor_hears(const std::shared_ptr<SimActor>& actor, const Message& message) {
  if (const auto* peers = std::get_if<Peers>(&message)) {
    hear_peers(*actor, *peers);
  } else if (const auto* plan = std::get_if<GroupPlan>(&message)) {
    join_group(actor, *plan);
  } else if (const auto* abort = std::get_if<GroupAbort>(&message)) {
    if (abort->fence == actor->fence && actor->is_in_group) leave_group(actor, "told to");
  } else if (const auto* settled = std::get_if<CheckpointCommitted>(&message)) {
    if (settled->step == actor->settling_step && settled->fence == actor->fence) actor->is_settling = false;
  } else if (std::holds_alternative<Finish>(message)) {
    actor->finishes = true;
  } else if (const auto* begin = std::get_if<CheckpointBegin>(&message)) {
    write(actor, *begin);
  }
}

void World::hear_peers(SimActor& actor, const Peers& peers) {
  if (actor.role == feeder() && peers.gone.empty()) {
    actor.feeds.clear();
    for (const std::string& address : peers.channels) actor.feeds.insert(address.substr(4));
  }
  // A consumer that is left behind on a lost node hands out no slots.
  if (judge_.actors().is_left(actor.identity.instance())) return;
  for (const std::string& gone : peers.gone) {
    const auto found = actors_.find(gone);
    if (found != actors_.end() && found->second->node == actor.node)
      breach(fmt::format("{} counts as gone for {} and can still write", gone, actor.identity.instance()));
  }
}

void World::hang(const std::shared_ptr<SimActor>& actor) {
  actor->is_hung = true;
  if (actor->role == "learner" || actor->role == "checkpointer" || actor->role == "evaluator") return;
  // Its consumer reports it, again and again.
  const std::string told_by = actor->role == "env" ? "rollout/" : "learner/";
  clock_.after(Millis(10'000 + in(10'000)), [this, actor, told_by] {
    const auto by = actor_of(told_by, 1);
    const std::string instance = actor->identity.instance();
    if (!actor->is_hung || !actors_.contains(instance)) return;
    if (!by || by->is_hung) return hang(actor);
    in_actor(by, 0ms, [this, by, instance] {
      say(by, StuckProducer{.actor = by->identity.actor, .producer = instance, .text = "holds an item for too long"});
    });
    hang(actor);
  });
}

std::shared_ptr<SimActor> World::actor_of(const std::string& prefix, std::uint32_t number) {
  std::vector<std::shared_ptr<SimActor>> found;
  for (const auto& [instance, actor] : actors_) {
    if (instance.starts_with(prefix)) found.push_back(actor);
  }
  return found.empty() ? nullptr : found[number % found.size()];
}

}  // namespace troupe::testing
