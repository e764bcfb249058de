#pragma once

#include <functional>
#include <string>

#include "actors/mailbox.h"
#include "workers/controller/service.h"

namespace troupe::actors {

/// State of the actor; CAF destroys it with the actor.
struct ControllerState {
  /// Called and emptied when the job has ended.
  std::function<void(const std::string& failure)> on_end;
  static inline const char* name = "controller";
};

/// The shell around the controller. Signal::start calls ControllerService::start; send it once, when the actor can be
/// reached by its name, because an actor that is spawned may answer at once. From then on the shell calls tick() every
/// 50 ms until the job has an exit code. It calls handle() for every control message, and interrupt() for signals that
/// ask a job to stop. `on_end` is called once, on the actor's thread: with an empty text at the tick that found the
/// exit code, or with what an exception in one of these said, which ends the actor. `service` is not owned and outlives
/// the actor. Spawn detached, with a thread of its own: state is written to disk before its effect is visible.
MailboxActor::behavior_type controller_actor(MailboxActor::stateful_pointer<ControllerState> self,
                                             ControllerService* service,
                                             std::function<void(const std::string& failure)> on_end);

}  // namespace troupe::actors
