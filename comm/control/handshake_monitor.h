#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "comm/control/zmq_handles.h"

namespace troupe::comm {

/// Reports how the connection handshakes of one client socket end. Lives on the loop's thread, not longer than the
/// socket it watches.
class HandshakeMonitor {
 public:
  enum class Outcome : std::uint8_t {
    accepted,
    /// The server said no: our key is not listed.
    refused,
    /// It broke off: another server key, or no CURVE on the other side.
    failed,
  };
  struct Event {
    Outcome outcome = Outcome::failed;
    /// Endpoint of the connection, as libzmq names it.
    std::string address;
  };

  /// Errors: resource_exhausted (no sockets left).
  static Result<std::unique_ptr<HandshakeMonitor>> attach(void* context, void* watched);
  ~HandshakeMonitor();
  HandshakeMonitor(const HandshakeMonitor&) = delete;
  HandshakeMonitor& operator=(const HandshakeMonitor&) = delete;

  /// Readable when next() has something.
  void* socket() const noexcept { return socket_.get(); }
  /// One event; nothing when none waits.
  std::optional<Event> next();

 private:
  HandshakeMonitor(void* watched, ZmqSocket socket) : watched_(watched), socket_(std::move(socket)) {}
  void* watched_;
  ZmqSocket socket_;
};

}  // namespace troupe::comm
