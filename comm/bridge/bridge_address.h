#pragma once

#include <string>

#include "base/file_descriptor.h"
#include "base/result.h"

namespace troupe::comm {

/// Internal to comm/bridge: takes env.bridge.bind for one hub, as long as what it returns is open; closed where binding
/// itself keeps others away. A socket in a file is held by a lock on FILE.lock, since ZeroMQ takes it away from whoever
/// has it. Errors: invalid_argument (an address that others than this machine reach), unavailable (taken).
Result<base::FileDescriptor> take_bridge_address(const std::string& bind);

}  // namespace troupe::comm
