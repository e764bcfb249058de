#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "workers/inference/serve/policy_service.h"

namespace troupe {

/// How a policy is offered to clients.
struct PolicyFrontOptions {
  std::string protocol = "dreamzero";  ///< dreamzero, openpi (both WebSocket) or groot (ZeroMQ)
  std::string host = "127.0.0.1";
  std::uint16_t port = 0;  ///< 0: any free one
  std::string token;       ///< empty: none wanted
  std::string action_key;  ///< parse_action_key; empty: the protocol's own form
  std::size_t max_request_bytes = std::size_t{64} << 20;
  std::int64_t max_connections = 64;                ///< WebSocket clients at once
  std::int64_t requests_per_client = 4;             ///< that wait or run; the next is refused
  std::chrono::milliseconds idle_timeout{600'000};  ///< of a silent connection
  std::chrono::milliseconds handshake_timeout{10'000};
  std::chrono::milliseconds write_timeout{10'000};  ///< for a client to take a reply
  bool allow_kill = false;                          ///< groot's `kill`
  std::function<void()> on_kill;                    ///< called on a server's thread; must not block
};

/// A policy service behind a socket. Owns both; destroying it stops the service, then the server.
class PolicyFront {
 public:
  virtual ~PolicyFront() = default;
  virtual std::uint16_t port() const = 0;
  virtual const PolicyService& service() const = 0;
};

/// Starts the server of that protocol. Errors: invalid_argument (protocol, action key, address), unavailable (address
/// in use), resource_exhausted.
Result<std::unique_ptr<PolicyFront>> start_front(const PolicyFrontOptions& options,
                                                 std::unique_ptr<PolicyService> service);

/// The same, for one transport each.
Result<std::unique_ptr<PolicyFront>> start_websocket_front(const PolicyFrontOptions& options,
                                                           std::unique_ptr<PolicyService> service);
Result<std::unique_ptr<PolicyFront>> start_groot_front(const PolicyFrontOptions& options,
                                                       std::unique_ptr<PolicyService> service);

}  // namespace troupe
