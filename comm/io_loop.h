#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "comm/envelope.h"

namespace troupe {

/// CURVE keys of a socket, Z85 text. Empty: no CURVE, allowed on ipc and loopback only.
struct CurveServer {
  std::string secret_key;
  std::vector<std::string> allowed_clients;  ///< public keys; a client with another key is refused by the ZAP handler
};
struct CurveClient {
  std::string server_key;
  std::string public_key;
  std::string secret_key;
};

/// Identity of a socket opened on a loop.
enum class SocketId : std::uint32_t {};

/// The one thread of a process that owns ZeroMQ sockets, timers and watched descriptors (control-plane.md 18).
/// It never runs actor code: callbacks must be short and must not block. Every method may be called from any thread;
/// what touches a socket is posted to the loop. Callbacks run on the loop's thread.
class IoLoop {
 public:
  using OnMessage = std::function<void(SocketId socket, const std::string& routing_id, Envelope envelope, std::vector<std::byte> payload)>;

  /// Starts the thread. Errors: resource_exhausted (no descriptors or threads).
  static Result<std::unique_ptr<IoLoop>> start(const std::string& name);
  /// Closes all sockets (linger 500 ms) and joins the thread.
  virtual ~IoLoop() = default;

  /// Binds a ROUTER. "tcp://host:*" picks a port; bound_endpoint() tells which. A non-loopback tcp endpoint without `curve` is refused.
  virtual Result<SocketId> bind_router(const std::string& endpoint, OnMessage on_message, std::optional<CurveServer> curve = {}) = 0;
  /// Connects a DEALER with the given routing id (<= 64 bytes of [a-z0-9.#/_-]).
  virtual Result<SocketId> connect_dealer(const std::string& endpoint, const std::string& routing_id, OnMessage on_message,
                                          std::optional<CurveClient> curve = {}) = 0;
  virtual std::string bound_endpoint(SocketId socket) const = 0;
  virtual void close(SocketId socket) = 0;

  /// Queues a message. `routing_id` names the peer of a ROUTER and is empty for a DEALER. Undeliverable messages are counted
  /// and reported to `on_undeliverable` (unset: logged once per peer).
  virtual void send(SocketId socket, const std::string& routing_id, const Envelope& envelope, std::vector<std::byte> payload) = 0;

  /// Runs `task` on the loop's thread.
  virtual void post(std::function<void()> task) = 0;
  /// Runs `task` after `delay`; the returned id cancels it.
  virtual std::uint64_t after(std::chrono::milliseconds delay, std::function<void()> task) = 0;
  virtual void cancel(std::uint64_t timer) = 0;
  /// Calls `on_readable` when fd is readable (pidfd, signalfd), until unwatch or until it returns false.
  virtual void watch(int fd, std::function<bool()> on_readable) = 0;
  virtual void unwatch(int fd) = 0;

  /// Counters: malformed messages, refused clients, undeliverable messages, longest turn in seconds.
  struct Stats {
    std::uint64_t malformed = 0, refused = 0, undeliverable = 0, received = 0, sent = 0;
    double longest_turn_s = 0;
  };
  virtual Stats stats() const = 0;
};

}  // namespace troupe
