#pragma once

#include <caf/all.hpp>
#include <string>

#include "comm/control/messages.h"

namespace troupe {

/// A control message on its way inside one process. Between processes the bridge turns it into an envelope.
struct Letter {
  std::string from;
  std::string to;
  Message message;
};

/// Something happened outside the actor system: a signal, a timer of the shell, an exit of a child.
enum class Wake : std::uint8_t { tick, interrupt, terminate };

}  // namespace troupe

// Letters stay inside the process: handles to memory of this process may be in them.
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::Letter)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::Wake)

namespace troupe {

/// Every actor of Troupe takes letters; those with timers or signals also take wakes. Nothing is answered by return value:
/// an answer is a letter (CAF would send a returned value back as a message of its own).
using MailActor = caf::typed_actor<caf::reacts_to<Letter>, caf::reacts_to<Wake>>;

}  // namespace troupe
