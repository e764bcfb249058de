#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "comm/serve/websocket_server.h"
#include "workers/inference/serve/policy_service.h"

namespace troupe::workers {

/// How a policy is offered to clients. Of the base, groot uses host, port, token, max_message_bytes,
/// max_unfinished_bytes, max_connections and handshake_timeout only.
struct PolicyFrontOptions : WebSocketServerOptions {
  /// Dreamzero, openpi (both WebSocket) or groot (ZeroMQ).
  std::string protocol = "dreamzero";
  /// parse_action_key; empty: the protocol's own form.
  std::string action_key{};
  /// Requests of one client that wait or run; the next is refused.
  std::int64_t requests_per_client = 4;
  /// Whether groot's `kill` stops the server.
  bool allow_kill = false;
  /// Called on a server's thread; must not block.
  std::function<void()> on_kill;
};

/// A policy service behind a socket. Owns both; destroying it stops the service, then the server.
class PolicyFront {
 public:
  virtual ~PolicyFront() = default;
  /// The port that is listened on, also where options asked for any.
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

}  // namespace troupe::workers
