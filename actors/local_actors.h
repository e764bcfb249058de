#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "actors/bridge.h"
#include "actors/mailbox.h"
#include "actors/role.h"
#include "comm/control/actor_identity.h"
#include "comm/control/outbox.h"

namespace troupe::actors {

/// The role actors that live in this process, by instance ("decoder/0#1"), which is their name in control messages.
/// Each runs on a thread of its own (detached). Thread-safe.
class LocalActors {
 public:
  /// Builds a role; called on the new actor's thread. An exception means that it could not start; its text is the
  /// reason.
  using MakeRole =
      std::function<std::unique_ptr<Role>(const ActorIdentity& identity, const std::string& role, Outbox outbox)>;

  /// `system` and `bridge` are not owned and outlive it.
  LocalActors(caf::actor_system& system, Bridge& bridge, MakeRole make);
  /// Ends all of them at once and waits for each in turn, 10 seconds at most; one that hangs is logged and left.
  ~LocalActors();

  /// Spawns the role detached and makes it reachable. `on_end` is called once, after the role is destroyed;
  /// `failure` says what was thrown ("could not start: ..."), or is empty.
  void spawn(const ActorIdentity& identity, const std::string& role,
             std::function<void(const std::string& failure)> on_end);
  /// Takes the actor out of the bridge and asks it to end; on_end follows. An unknown one is ignored. Does not wait.
  void stop(const std::string& instance);

 private:
  caf::actor_system& system_;
  Bridge& bridge_;
  const MakeRole make_;
  std::mutex mutex_;
  std::map<std::string, MailboxActor> actors_;
};

}  // namespace troupe::actors
