#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "workers/inference/serve/policy_service.h"

namespace troupe::workers {

/// How a policy is offered to clients.
struct PolicyFrontOptions {
  /// Dreamzero, openpi (both WebSocket) or groot (ZeroMQ).
  std::string protocol = "dreamzero";
  std::string host = "127.0.0.1";
  /// 0: any free one.
  std::uint16_t port = 0;
  /// Empty: none wanted.
  std::string token;
  /// parse_action_key; empty: the protocol's own form.
  std::string action_key;
  /// A longer message ends the connection before anything is allocated for it.
  std::size_t max_request_bytes = std::size_t{64} << 20;
  /// WebSocket clients at once.
  std::int64_t max_connections = 64;
  /// Requests of one client that wait or run; the next is refused.
  std::int64_t requests_per_client = 4;
  /// How long a connection may be silent.
  std::chrono::milliseconds idle_timeout{600'000};
  /// From a connection to its complete HTTP request.
  std::chrono::milliseconds handshake_timeout{10'000};
  /// How long a client may take to accept a reply.
  std::chrono::milliseconds write_timeout{10'000};
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
