#pragma once

#include <functional>
#include <string>

#include "comm/control/messages.h"

namespace troupe::workers {

/// Sends a control message to an actor by name. Any thread; never blocks.
using Outbox = std::function<void(const std::string& to, const Message& message)>;

/// What an actor is for, as a plain class: it receives control messages one at a time, answers through its Outbox,
/// and does its blocking work on threads of its own. Destroying it ends that work. The CAF shell around it is
/// actors/role_actor.h.
class Role {
 public:
  virtual ~Role() = default;
  /// Begins work; reports ActorUp to "controller" when ready.
  virtual void start() = 0;
  /// Must not block. Messages that mean nothing to the role are ignored.
  virtual void handle(const std::string& from, const Message& message) = 0;
};

/// Who this role is.
struct RoleIdentity {
  std::string actor;  ///< "decoder/0"
  std::int64_t incarnation = 0;
  /// "decoder/0#1": unique over restarts.
  std::string instance() const { return actor + "#" + std::to_string(incarnation); }
};

}  // namespace troupe::workers
