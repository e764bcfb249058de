#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"

namespace troupe::comm {

/// How a ZmtpFront listens, and what it lets a peer send.
struct ZmtpFrontOptions {
  /// As TcpAddress::parse takes it.
  std::string host = "127.0.0.1";
  /// 0: any free one.
  std::uint16_t port = 0;
  /// Path of the Unix socket at which libzmq listens (ipc://PATH).
  std::string backend;
  /// Of all frames of one message together.
  std::size_t max_message_bytes = std::size_t{64} << 20;
  /// Of all unfinished messages of all peers together; the peer that goes over it is cut.
  std::size_t max_unfinished_bytes = std::size_t{512} << 20;
  std::size_t max_connections = 64;
  /// From accept to the handshake's first command.
  std::chrono::milliseconds handshake_timeout{10'000};
  /// From a message's first byte to its last.
  std::chrono::milliseconds message_timeout{60'000};
};

/// Stands between the network and a libzmq socket without CURVE, because libzmq keeps any number of frames of one
/// message before anybody can look at a token. Passes the bytes of each connection on as they are, counts them first
/// (ZmtpMeter), and cuts a peer that goes over a limit, before libzmq has seen the byte that does. A connection over
/// max_connections pushes out the oldest that has not shaken hands; without one it is refused. One thread.
class ZmtpFront {
 public:
  /// Binds and starts. Errors: invalid_argument (host), unavailable (address in use), resource_exhausted.
  static Result<std::unique_ptr<ZmtpFront>> start(const ZmtpFrontOptions& options);
  /// Cuts every connection.
  virtual ~ZmtpFront() = default;
  virtual std::uint16_t port() const = 0;

  /// Counters since start. Any thread.
  struct Stats {
    std::uint64_t accepted = 0;
    /// Went over a limit or a deadline.
    std::uint64_t cut = 0;
    /// Pushed out or refused: too many connections.
    std::uint64_t turned_away = 0;
  };
  virtual Stats stats() const = 0;
};

}  // namespace troupe::comm
