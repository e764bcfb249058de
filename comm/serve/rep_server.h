#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace troupe::comm {

/// How a RepServer listens.
struct RepServerOptions {
  /// As TcpAddress::parse takes it. By default other machines cannot reach the server.
  std::string host = "127.0.0.1";
  /// 0: any free one.
  std::uint16_t port = 0;
  /// Of one message, all its frames together; the front cuts a peer that announces more.
  std::size_t max_message_bytes = std::size_t{64} << 20;
  /// Of the unfinished messages of all peers.
  std::size_t max_unfinished_bytes = std::size_t{512} << 20;
  std::size_t max_connections = 64;
  std::chrono::milliseconds handshake_timeout{10'000};
  /// A connected peer that is silent for two of these is disconnected.
  std::chrono::milliseconds heartbeat{30'000};
  /// Messages that wait each way for one peer; more replies are dropped.
  int queue_per_peer = 4;
};

/// Whom to answer: what a ROUTER puts in front of a request.
struct RepPeer {
  /// Of the connection; the same for all its requests.
  std::string id;
  /// Further frames before the delimiter (REQ_CORRELATE).
  std::vector<std::string> route;
};

/// A ZeroMQ server for REQ clients, as a REP would be, but with a ROUTER, so that a slow or silent client delays no
/// other. A ZmtpFront stands between it and the network. Two threads. Methods may be called from any thread.
class RepServer {
 public:
  /// On the server's thread: short, never blocking. `message` is libzmq's and valid during the call: a copy would
  /// double what a stranger can make the server hold.
  using OnRequest = std::function<void(const RepPeer& peer, std::span<const std::byte> message)>;

  /// Binds and starts. Errors: invalid_argument (host), unavailable (address in use), resource_exhausted.
  static Result<std::unique_ptr<RepServer>> start(const RepServerOptions& options, OnRequest on_request);
  /// Stops.
  virtual ~RepServer() = default;
  /// Sends what is queued (linger 500 ms) and joins. Requests may come until it returns, none afterwards.
  virtual void stop() = 0;

  /// The one bound.
  virtual std::uint16_t port() const = 0;
  /// Queues the answer; returns at once. An unknown or full peer loses it without a word.
  virtual void reply(const RepPeer& peer, std::vector<std::byte> message) = 0;

  /// Counters since start.
  struct Stats {
    std::uint64_t requests = 0;
    std::uint64_t replies = 0;
    /// Messages without a delimiter or of several parts; not answered.
    std::uint64_t malformed = 0;
  };
  virtual Stats stats() const = 0;
};

}  // namespace troupe::comm
