#pragma once

#include <functional>
#include <memory>

#include "actors/mailbox.h"
#include "workers/role.h"

namespace troupe::actors {

/// State of a role's actor: the destructor ends the role, then calls on_end.
struct RoleState {
  std::unique_ptr<Role> role;
  std::function<void(const std::string& failure)> on_end;
  /// Why the role could not start; empty: it started.
  std::string failure;
  static inline const char* name = "role";
  ~RoleState();
};

/// The shell around any worker role: calls `make` and Role::start on the actor's own thread, passes control messages to
/// Role::handle one at a time, destroys the role at the end. An exception from `make` or start() ends the actor.
/// Spawn detached: a role's construction opens files and its destruction joins threads. `on_end` runs after that, once,
/// on the actor's thread, with the reason why the role could not start, or an empty text.
MailboxActor::behavior_type role_actor(MailboxActor::stateful_pointer<RoleState> self,
                                       std::function<std::unique_ptr<Role>()> make,
                                       std::function<void(const std::string& failure)> on_end);

}  // namespace troupe::actors
