#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "base/result.h"
#include "workers/inference/policy/policy.h"

namespace troupe::workers {

/// Asks a running server for one action chunk over its real socket, with black frames and a state of zeros, and
/// describes the reply: "actions <f4 [24, 8]", keys separated by commas. Errors: unavailable, deadline_exceeded, and
/// what the server said.
Result<std::string> self_test(const std::string& protocol, const std::string& host, std::uint16_t port,
                              const std::string& token, const PolicyInfo& info, std::chrono::milliseconds timeout);

}  // namespace troupe::workers
