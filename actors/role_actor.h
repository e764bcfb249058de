#pragma once

#include <functional>
#include <memory>

#include "actors/mailbox.h"
#include "workers/role.h"

namespace troupe {

struct RoleState {
  std::unique_ptr<Role> role;
  std::function<void(const std::string& failure)> on_end;
  std::string failure;  ///< why the role could not start
  static inline const char* name = "role";
  ~RoleState();
};

/// The shell around any worker role: builds it on the actor's own thread, passes letters on, destroys it at the end.
/// Spawn detached: a role's construction opens files and its destruction joins threads. `on_end` runs after that.
MailActor::behavior_type role_actor(MailActor::stateful_pointer<RoleState> self,
                                    std::function<std::unique_ptr<Role>()> make,
                                    std::function<void(const std::string& failure)> on_end);

}  // namespace troupe
