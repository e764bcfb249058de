#include "actors/controller_actor.h"

namespace troupe::actors {

namespace {
constexpr std::chrono::milliseconds kTick{50};
}

MailboxActor::behavior_type controller_actor(MailboxActor::stateful_pointer<ControllerState> self,
                                             ControllerService* service, std::function<void()> on_end) {
  self->state.service = service;
  self->state.on_end = std::move(on_end);
  service->start(std::chrono::steady_clock::now());
  self->delayed_send(self, kTick, Signal::tick);
  return {
      [self](const ControlMessage& mail) {
        self->state.service->handle(mail.from, mail.message, std::chrono::steady_clock::now());
      },
      [self](Signal wake) {
        const auto now = std::chrono::steady_clock::now();
        if (wake == Signal::tick) {
          self->state.service->tick(now);
          // A pending delayed_send keeps an actor alive: the last tick is not re-armed.
          if (!self->state.service->exit_code()) {
            self->delayed_send(self, kTick, Signal::tick);
          } else if (self->state.on_end) {
            std::exchange(self->state.on_end, {})();
          }
        } else {
          self->state.service->interrupt(wake == Signal::interrupt ? "SIGINT" : "SIGTERM", now);
        }
      },
  };
}

}  // namespace troupe::actors
