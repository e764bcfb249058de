#pragma once

#include <string>

#include "base/file_descriptor.h"
#include "base/result.h"

namespace troupe::comm {

/// Internal to comm/bridge: reserves the address env.bridge.bind for one hub while the returned descriptor is open.
/// For ipc://FILE it locks FILE.lock, because ZeroMQ replaces the socket file of a hub that still runs. For tcp the
/// descriptor is closed: the system refuses a second bind. Errors: invalid_argument (an address that other machines can
/// reach), unavailable (another hub has it).
Result<base::FileDescriptor> take_bridge_address(const std::string& bind);

}  // namespace troupe::comm
