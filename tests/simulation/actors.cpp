#include <fmt/format.h>

#include "tests/simulation/world.h"

namespace troupe::testing {

void World::begin_actor(std::size_t host, const ActorIdentity& identity, const std::string& role,
                        NodeRole::OnEnd on_end) {
  auto actor = std::make_shared<SimActor>();
  actor->identity = identity;
  actor->role = role;
  actor->node = host;
  actor->on_end = std::move(on_end);
  actor->process = std::make_shared<SimProcess>(host, OrderedDelivery::Limits{});
  actor->process->names[identity.instance()] = [this, weak = std::weak_ptr(actor)](const std::string&,
                                                                                   const Message& message) {
    const auto held = weak.lock();
    if (held && !held->is_hung) actor_hears(held, message);
  };
  actors_[identity.instance()] = actor;
  wire_.add(actor->process);
  in_actor(actor, Millis(50 + in(500)), [this, actor] {
    ActorUp up{.actor = actor->identity.actor, .incarnation = actor->identity.incarnation, .pid = 1};
    if (actor->role == "learner")
      up.channels = {"shm:" + actor->identity.instance(), "zmq:" + actor->identity.instance()};
    say(actor, up);
  });
}

void World::end_actor(const std::string& instance, const std::string& failure, Millis after) {
  clock_.after(after, [this, instance, failure] {
    const auto found = actors_.find(instance);
    if (found == actors_.end()) return;
    const auto actor = found->second;
    const auto host = newest_host_process(actor->node);
    drop_actor(instance);
    if (host && host->is_alive) wire_.run_in(host, [actor, failure] { actor->on_end(failure); });
  });
}

std::shared_ptr<SimProcess> World::newest_host_process(std::size_t host) {
  if (host == 0) return controller_;
  for (const auto& node : nodes_) {
    if (node->host == host && node->process->is_alive) return node->process;
  }
  return nullptr;
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
  wire_.send(actor->process, actor->identity.instance(), "controller", message);
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
  if (actor.role == "decoder" && peers.gone.empty()) {
    actor.feeds.clear();
    for (const std::string& address : peers.channels) actor.feeds.insert(address.substr(4));
  }
  for (const std::string& gone : peers.gone) {
    actor.producers.erase(gone);
    const auto found = actors_.find(gone);
    if (found != actors_.end() && found->second->node == 0)
      breach(fmt::format("{} counts as gone and can still write", gone));
  }
}

}  // namespace troupe::testing
