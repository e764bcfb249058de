#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"

namespace troupe::comm {

/// A client's connection; never used twice by a server.
using ConnectionId = std::uint64_t;

/// How a WebSocketServer listens and what it allows one client.
struct WebSocketServerOptions {
  /// An IPv4 or IPv6 address, or "localhost".
  std::string host = "127.0.0.1";
  /// 0: any free one.
  std::uint16_t port = 0;
  /// Wanted in `Authorization`; empty: none wanted, and browsers' requests are refused.
  std::string token{};
  /// A longer message ends the connection before anything is allocated for it.
  std::size_t max_message_bytes = std::size_t{64} << 20;
  /// Of the messages that have begun to come and not ended, of all clients together; the one that goes over it is
  /// dropped.
  std::size_t max_unfinished_bytes = std::size_t{512} << 20;
  /// Upgraded ones; the next is answered 503.
  std::size_t max_connections = 64;
  /// Connections before their upgrade; a further one closes the oldest of them.
  std::size_t max_handshakes = 64;
  /// Replies that wait for one client; it is dropped beyond.
  std::size_t max_queued_bytes = std::size_t{64} << 20;
  /// From accept to upgrade.
  std::chrono::milliseconds handshake_timeout{10'000};
  /// From a message's first byte to its last.
  std::chrono::milliseconds message_timeout{60'000};
  /// For one reply to be taken.
  std::chrono::milliseconds write_timeout{10'000};
  /// Without any frame; pinged at half of it.
  std::chrono::milliseconds idle_timeout{600'000};
  /// For the peer's answer to our close.
  std::chrono::milliseconds close_timeout{2'000};
};

/// What a server tells its owner, on the server's thread: short, never blocking, never destroying the server.
struct WebSocketCallbacks {
  std::function<void(ConnectionId)> on_open;
  std::function<void(ConnectionId, std::vector<std::byte> message, bool is_text)> on_message;
  /// Once for each on_open.
  std::function<void(ConnectionId)> on_close;
  /// Of GET /healthz; unset: always.
  std::function<bool()> is_healthy;
  /// Of GET /status, which wants the token; unset: 404.
  std::function<std::string()> status_json;
};

/// A WebSocket server for policy clients: one thread, no compression, one frame per reply. A read is pending whatever
/// the owner does, so pings are answered while it computes. Plain HTTP: GET /healthz (200 "OK\n", or 503) and GET
/// /status. Methods may be called from any thread. What a client does wrong costs only that client (docs/serve.md lists
/// the limits).
class WebSocketServer {
 public:
  /// Binds and starts. Errors: invalid_argument (host), unavailable (address in use), resource_exhausted (threads).
  static Result<std::unique_ptr<WebSocketServer>> start(const WebSocketServerOptions& options,
                                                        WebSocketCallbacks callbacks);
  /// Stops.
  virtual ~WebSocketServer() = default;
  /// Sends what is queued, closes every connection with 1001, and joins; at most write_timeout plus close_timeout.
  /// Callbacks may run until it returns, none afterwards. Not from a callback.
  virtual void stop() = 0;

  /// The one bound.
  virtual std::uint16_t port() const = 0;
  /// Queues a frame; an unknown connection is ignored (the client has left).
  virtual void send_binary(ConnectionId connection, std::vector<std::byte> message) = 0;
  virtual void send_text(ConnectionId connection, std::string text) = 0;
  /// Closes with that code after all queued frames.
  /// Codes of RFC 6455 section 7.4; the reason is cut to 120 bytes.
  virtual void close(ConnectionId connection, std::uint16_t code, std::string reason) = 0;

  /// Counters since start.
  struct Stats {
    /// Connections.
    std::uint64_t accepted = 0;
    /// Upgraded.
    std::uint64_t opened = 0;
    std::uint64_t open_now = 0;
    /// 401 and 403.
    std::uint64_t unauthorized = 0;
    /// 503, and handshakes that a newer one pushed out.
    std::uint64_t turned_away = 0;
    /// A deadline ran out, a message was too big, or a protocol error.
    std::uint64_t dropped = 0;
    std::uint64_t messages = 0;
    std::uint64_t replies = 0;
  };
  virtual Stats stats() const = 0;
};

}  // namespace troupe::comm
