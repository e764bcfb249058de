#pragma once

#include <cstdint>
#include <string>

#include "base/namespaces.h"

namespace troupe::comm {

/// Who an actor is in control messages.
struct ActorIdentity {
  std::string actor;  ///< "decoder/0"
  std::int64_t incarnation = 0;
  /// "decoder/0#1": unique over restarts.
  std::string instance() const { return actor + "#" + std::to_string(incarnation); }
};

}  // namespace troupe::comm
