#include "actors/controller_actor.h"

#include "actors/guard.h"
#include "base/log.h"

namespace troupe::actors {

namespace {
constexpr std::chrono::milliseconds kTick{50};

Interrupt interrupt_of(Signal signal) {
  switch (signal) {
    case Signal::hangup:
      return {.why = "SIGHUP"};
    case Signal::terminate:
      return {.why = "SIGTERM", .is_preemption = true};
    case Signal::warning:
      return {.why = "SIGUSR1", .is_preemption = true};
    default:
      return {.why = "SIGINT"};
  }
}

}  // namespace

MailboxActor::behavior_type controller_actor(MailboxActor::stateful_pointer<ControllerState> self,
                                             ControllerService* service,
                                             std::function<void(const std::string& failure)> on_end) {
  self->state.on_end = std::move(on_end);
  const auto end = [self](const std::string& failure) {
    if (self->state.on_end) std::exchange(self->state.on_end, {})(failure);
  };
  const auto guarded = [self, end](const std::string& what, const std::function<void()>& handler) {
    const std::string failure = failure_of("the controller " + what, handler);
    if (failure.empty()) return true;
    log::error("{}", failure);
    end(failure);
    self->quit(caf::exit_reason::unhandled_exception);
    return false;
  };
  return {
      [service, guarded](const ControlMessage& control) {
        guarded(failed_handling(control.message),
                [&] { service->handle(control.from, control.message, std::chrono::steady_clock::now()); });
      },
      [self, service, guarded, end](Signal signal) {
        const auto now = std::chrono::steady_clock::now();
        if (signal == Signal::start) {
          if (guarded("could not start", [&] { service->start(now); })) self->delayed_send(self, kTick, Signal::tick);
        } else if (signal != Signal::tick) {
          guarded("failed while handling a signal", [&] { service->interrupt(interrupt_of(signal), now); });
        } else if (guarded("failed at a tick", [&] { service->tick(now); })) {
          // A pending delayed_send keeps an actor alive: the last tick is not re-armed.
          if (service->exit_code()) {
            end("");
          } else {
            self->delayed_send(self, kTick, Signal::tick);
          }
        }
      },
  };
}

}  // namespace troupe::actors
