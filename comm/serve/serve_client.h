#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace troupe::comm {

/// A frame that a policy server sent.
struct ServerFrame {
  std::vector<std::byte> bytes;
  bool is_text = false;
};

/// Our own client of a WebSocket policy server, for the self-test and for tests. Not thread-safe: one thread at a time.
class WebSocketClient {
 public:
  /// Connects and upgrades; `token` goes into `Authorization: Bearer`. Errors: invalid_argument (host), unavailable
  /// (refused: names the HTTP status), deadline_exceeded.
  static Result<std::unique_ptr<WebSocketClient>> connect(const std::string& host, std::uint16_t port,
                                                          const std::string& token, std::chrono::milliseconds timeout);
  virtual ~WebSocketClient() = default;
  /// Errors of both: unavailable (closed: names the code and reason), deadline_exceeded. After one the client is of no
  /// use.
  /// Sends one binary frame; receive() waits for one frame of either kind.
  virtual Result<void> send(std::span<const std::byte> binary, std::chrono::milliseconds timeout) = 0;
  virtual Result<ServerFrame> receive(std::chrono::milliseconds timeout) = 0;
};

/// Asks a GR00T server one question over ZeroMQ REQ. Errors: invalid_argument (host), deadline_exceeded.
Result<std::vector<std::byte>> ask_rep_server(const std::string& host, std::uint16_t port,
                                              std::span<const std::byte> request, std::chrono::milliseconds timeout);

}  // namespace troupe::comm
