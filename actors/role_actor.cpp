#include "actors/role_actor.h"

#include "actors/guard.h"
#include "base/log.h"

namespace troupe::actors {

RoleState::~RoleState() {
  role.reset();
  if (on_end) on_end(failure);
}

MailboxActor::behavior_type role_actor(MailboxActor::stateful_pointer<RoleState> self, std::string instance,
                                       MessageTypes takes, std::function<std::unique_ptr<Role>()> make,
                                       std::function<void(const std::string& failure)> on_end) {
  self->state.on_end = std::move(on_end);
  const auto guarded = [self, instance](const std::string& what, const std::function<void()>& handler) {
    self->state.failure = failure_of(what, handler);
    if (self->state.failure.empty()) return;
    log::error("{} {}", instance, self->state.failure);
    self->quit(caf::exit_reason::unhandled_exception);
  };
  guarded("could not start", [&] {
    self->state.role = make();
    self->state.role->start();
  });
  return {
      [self, instance = std::move(instance), takes, guarded](const ControlMessage& control) {
        if (!contains(takes, control.message)) {
          log::warn("{} takes no {}; that of {} dropped", instance, name_of(type_of(control.message)), control.from);
          return;
        }
        guarded(failed_handling(control.message), [&] { self->state.role->handle(control.from, control.message); });
      },
      [](Signal) {},
  };
}

}  // namespace troupe::actors
