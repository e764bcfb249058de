#pragma once

#include <functional>
#include <string>

#include "comm/control/messages.h"

namespace troupe::comm {

/// Sends a control message to an actor by name. Any thread; never blocks.
using Outbox = std::function<void(const std::string& to, const Message& message)>;

}  // namespace troupe::comm
