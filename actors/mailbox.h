#pragma once

#include <caf/all.hpp>
#include <string>

#include "comm/control/messages.h"

namespace troupe::actors {

/// A control message on its way inside one process: names of sender and receiver ("learner/0", "controller"), and the
/// message. Between processes the bridge turns it into an envelope (docs/wire.md#envelope).
struct ControlMessage {
  std::string from;
  std::string to;
  Message message;
};

/// A timer or signal: `start` begins the controller's work, `tick` is its shell's timer, the others are SIGINT, SIGHUP,
/// SIGTERM and SIGUSR1.
enum class Signal : std::uint8_t { start, tick, interrupt, hangup, terminate, warning };

}  // namespace troupe::actors

// These messages stay inside the process and are never serialised by CAF: they may hold handles to its memory.
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::ControlMessage)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::Signal)

namespace troupe::actors {

/// The type of every actor of Troupe: its mailbox takes control messages and, of those that have any, timers and
/// signals. Nothing is answered by return value: an answer is a control message of its own (CAF would send a returned
/// value back as a message of its own).
using MailboxActor = caf::typed_actor<caf::reacts_to<ControlMessage>, caf::reacts_to<Signal>>;

}  // namespace troupe::actors
