#include "actors/role_actor.h"

#include "base/log.h"

namespace troupe::actors {

RoleState::~RoleState() {
  role.reset();
  if (on_end) on_end(failure);
}

MailboxActor::behavior_type role_actor(MailboxActor::stateful_pointer<RoleState> self,
                                       std::function<std::unique_ptr<Role>()> make,
                                       std::function<void(const std::string& failure)> on_end) {
  self->state.on_end = std::move(on_end);
  try {
    self->state.role = make();
    self->state.role->start();
  } catch (const std::exception& e) {
    self->state.failure = e.what();
    log::error("role could not start: {}", e.what());
    self->quit(caf::exit_reason::unhandled_exception);
  }
  return {
      [self](const ControlMessage& mail) {
        if (self->state.role) self->state.role->handle(mail.from, mail.message);
      },
      [](Signal) {},
  };
}

}  // namespace troupe::actors
