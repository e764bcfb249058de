#pragma once

#include <functional>

#include "actors/mailbox.h"
#include "workers/controller/service.h"

namespace troupe::actors {

/// State of the actor; CAF destroys it with the actor.
struct ControllerState {
  ControllerService* service = nullptr;
  /// Called and emptied when the job has ended.
  std::function<void()> on_end;
  static inline const char* name = "controller";
};

/// The shell around the controller: calls ControllerService::start, then handle() for every control message, tick()
/// every 50 ms until the job has an exit code, and interrupt() for SIGINT and SIGTERM. `on_end` is called once, at
/// the tick that found the exit code, on the actor's thread. `service` is not owned and outlives the actor. Spawn
/// detached, with a thread of its own: state is written to disk before its effect is visible.
MailboxActor::behavior_type controller_actor(MailboxActor::stateful_pointer<ControllerState> self,
                                             ControllerService* service, std::function<void()> on_end);

}  // namespace troupe::actors
