#pragma once

#include <functional>
#include <memory>

#include "actors/actor_catalogue.h"
#include "actors/mailbox.h"
#include "actors/role.h"

namespace troupe::actors {

/// State of a role's actor: the destructor ends the role, then calls on_end.
struct RoleState {
  std::unique_ptr<Role> role;
  std::function<void(const std::string& failure)> on_end;
  /// Why the actor ended: "could not start: ..." or "failed while handling ...: ..."; empty: it was told to.
  std::string failure;
  static inline const char* name = "role";
  ~RoleState();
};

/// The shell around any role: calls `make` and Role::start on the actor's own thread, passes control messages of the
/// types `takes` to Role::handle one at a time, drops others with a warning, destroys the role at the end. An exception
/// from `make`, start() or handle() ends the actor. Spawn detached: a role opens files while it is made, may work in
/// handle(), and joins threads when it is destroyed. `on_end` runs after that, once, on the actor's thread, with the
/// failure. `instance` names the actor in the log.
MailboxActor::behavior_type role_actor(MailboxActor::stateful_pointer<RoleState> self, std::string instance,
                                       MessageTypes takes, std::function<std::unique_ptr<Role>()> make,
                                       std::function<void(const std::string& failure)> on_end);

}  // namespace troupe::actors
