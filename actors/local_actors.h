#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "actors/bridge.h"
#include "actors/mailbox.h"
#include "workers/role.h"

namespace troupe {

/// The role actors that live in this process. Thread-safe.
class LocalActors {
 public:
  using MakeRole =
      std::function<std::unique_ptr<Role>(const RoleIdentity& identity, const std::string& role, Outbox outbox)>;

  LocalActors(caf::actor_system& system, Bridge& bridge, MakeRole make);
  /// Ends all of them and waits for each, 10 seconds at most.
  ~LocalActors();

  /// Spawns the role detached and makes it reachable by name. `on_end` is called once, after the role is destroyed;
  /// `failure` says why it could not start, or is empty.
  void spawn(const RoleIdentity& identity, const std::string& role,
             std::function<void(const std::string& failure)> on_end);
  /// Asks the actor to end; on_end follows.
  void stop(const std::string& actor);

 private:
  caf::actor_system& system_;
  Bridge& bridge_;
  const MakeRole make_;
  std::mutex mutex_;
  std::map<std::string, MailActor> actors_;
};

}  // namespace troupe
