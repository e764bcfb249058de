#include "actors/local_actors.h"

#include <pthread.h>

#include "actors/actor_process.h"
#include "actors/role_actor.h"
#include "base/log.h"

namespace troupe::actors {

LocalActors::LocalActors(caf::actor_system& system, Bridge& bridge, MakeRole make)
    : system_(system), bridge_(bridge), make_(std::move(make)) {}

LocalActors::~LocalActors() {
  std::map<std::string, MailboxActor> actors;
  {
    std::lock_guard lock(mutex_);
    actors.swap(actors_);
  }
  for (auto& [name, actor] : actors) {
    bridge_.remove_local(name);
    caf::anon_send_exit(actor, caf::exit_reason::user_shutdown);
  }
  for (auto& [name, actor] : actors) {
    if (!wait_for_end(system_, actor, std::chrono::seconds(10))) log::error("{} did not end within 10 s", name);
  }
}

void LocalActors::spawn(const ActorIdentity& identity, const std::string& role,
                        std::function<void(const std::string& failure)> on_end) {
  const std::string name = identity.instance();
  // The bridge outlives this object, and the outbox may too.
  Outbox outbox = [&bridge = bridge_, name](const std::string& to, const Message& message) {
    bridge.send({name, to, message});
  };
  auto make = [this, identity, role, outbox] {
    // Threads that the role starts take the name on; the kernel keeps 15 bytes.
    ::pthread_setname_np(::pthread_self(), identity.actor.substr(0, 15).c_str());
    // The actor runs before spawn() returns; what it says before it can be reached by name would be answered in vain.
    { std::lock_guard until_reachable(mutex_); }
    return make_(identity, role, outbox);
  };
  std::lock_guard lock(mutex_);
  const MailboxActor actor = system_.spawn<caf::detached>(
      role_actor, name, taken_by(role), std::function<std::unique_ptr<Role>()>(make), std::move(on_end));
  bridge_.add_local(name, actor);
  actors_[name] = actor;
}

void LocalActors::stop(const std::string& instance) {
  std::lock_guard lock(mutex_);
  const auto found = actors_.find(instance);
  if (found == actors_.end()) return;
  bridge_.remove_local(instance);
  caf::anon_send_exit(found->second, caf::exit_reason::user_shutdown);
  actors_.erase(found);
}

}  // namespace troupe::actors
