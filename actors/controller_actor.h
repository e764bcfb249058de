#pragma once

#include <functional>

#include "actors/mailbox.h"
#include "workers/controller/service.h"

namespace troupe {

struct ControllerState {
  ControllerService* service = nullptr;
  std::function<void()> on_end;
  static inline const char* name = "controller";
};

/// The shell around the controller: letters and ticks in, ticks re-armed until the job has ended; `on_end` is called
/// once then. `service` outlives the actor.
/// Spawn detached: state is written to disk before its effect is visible.
MailActor::behavior_type controller_actor(MailActor::stateful_pointer<ControllerState> self, ControllerService* service,
                                          std::function<void()> on_end);

}  // namespace troupe
