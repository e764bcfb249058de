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

#include "base/namespaces.h"
#include "base/result.h"
#include "comm/control/client_keys.h"
#include "comm/control/envelope.h"

namespace troupe::comm {

/// CURVE keys of a socket, Z85 text. Empty: no CURVE, allowed on ipc and loopback only.
struct CurveServer {
  /// Of the server, 40 characters.
  std::string secret_key;
  /// Public keys, from any address; a client with another key is refused by the ZAP handler.
  std::vector<std::string> allowed_clients;
  /// Where set, a list that may change and bind keys to addresses, in place of `allowed_clients`.
  std::shared_ptr<const ClientKeys> live_clients = {};
};
/// Who a peer is, without its own words.
struct PeerProof {
  /// CURVE: its public key, which the handshake proved. Empty: no CURVE.
  std::string key = {};
  /// ipc: process and user at the time of its connect (SO_PEERCRED); 0 and -1: not ipc.
  std::int64_t pid = 0;
  std::int64_t uid = -1;
};
/// A client's pair, and the key that the server must prove to have.
struct CurveClient {
  std::string server_key;
  std::string public_key;
  std::string secret_key;
};

/// Largest payload frame a socket takes unless told otherwise (docs/wire.md#sockets).
inline constexpr std::size_t kDefaultMaxPayload = std::size_t{4} << 20;

/// Identity of a socket opened on a loop.
enum class SocketId : std::uint32_t {};

/// The one thread of a process that owns ZeroMQ sockets, timers and watched descriptors (docs/wire.md#the-loop).
/// It never runs actor code: callbacks must be short and must not block. Every method may be called from any thread;
/// what touches a socket is posted to the loop. Callbacks run on the loop's thread.
class IoLoop {
 public:
  /// `routing_id` is the peer's for a ROUTER, empty for a DEALER. Moved-in values belong to the callback.
  using OnMessage = std::function<void(SocketId socket, const std::string& routing_id, Envelope envelope,
                                       std::vector<std::byte> payload)>;

  /// Starts the thread. Errors: resource_exhausted (no descriptors or threads).
  static Result<std::unique_ptr<IoLoop>> start(const std::string& name);
  /// Closes all sockets (linger 500 ms) and joins the thread.
  virtual ~IoLoop() = default;

  /// Binds a ROUTER. "tcp://host:*" picks a port; bound_endpoint() tells which. A non-loopback tcp endpoint without
  /// `curve` is refused. "ipc://path" binds in a folder of mode 0700, which is made if absent. A curve socket is tested
  /// with throw-away keys first. `max_payload` bounds a payload frame both ways (MAXMSGSIZE = max_payload + 1 KiB);
  /// channels pass their item size. Errors: invalid_argument (endpoint, keys), failed_precondition (open folder, curve
  /// test), unavailable (address in use), deadline_exceeded (the loop is stuck).
  virtual Result<SocketId> bind_router(const std::string& endpoint, OnMessage on_message,
                                       std::optional<CurveServer> curve = {},
                                       std::size_t max_payload = kDefaultMaxPayload) = 0;
  /// Connects a DEALER with the given routing id (<= 64 bytes of [a-z0-9.#/_-]).
  /// libzmq connects, and connects again, by itself. Errors: as bind_router, but for address in use.
  virtual Result<SocketId> connect_dealer(const std::string& endpoint, const std::string& routing_id,
                                          OnMessage on_message, std::optional<CurveClient> curve = {},
                                          std::size_t max_payload = kDefaultMaxPayload) = 0;
  /// Empty for a DEALER and for a closed socket.
  virtual std::string bound_endpoint(SocketId socket) const = 0;
  /// Messages that wait for the socket's peers are given up; no callback of it comes afterwards when called on the
  /// loop's thread.
  virtual void close(SocketId socket) = 0;

  /// Queues a message. `routing_id` names the peer of a ROUTER and is empty for a DEALER. Undeliverable messages are
  /// counted and reported to `on_undeliverable` (unset: logged once per peer): no such peer or socket, a payload over
  /// the socket's bound, the peer's queue is full (256 messages, or bytes: 8 MiB, 16 x max_payload where that was
  /// raised), or the ttl ran out in it.
  virtual void send(SocketId socket, const std::string& routing_id, const Envelope& envelope,
                    std::vector<std::byte> payload) = 0;
  using OnUndeliverable = std::function<void(SocketId socket, const std::string& routing_id, const Envelope& envelope)>;
  /// Replaces the report of undeliverable messages; called on the loop's thread.
  virtual void set_on_undeliverable(OnUndeliverable report) = 0;

  /// Runs `task` on the loop's thread.
  virtual void post(std::function<void()> task) = 0;
  /// Runs `task` after `delay`; the returned id cancels it.
  /// Ids are never 0 and never used again.
  virtual std::uint64_t after(std::chrono::milliseconds delay, std::function<void()> task) = 0;
  /// Nothing happens when the timer has run; from another thread it may still run meanwhile.
  virtual void cancel(std::uint64_t timer) = 0;
  /// Calls `on_readable` when fd is readable (pidfd, signalfd), until unwatch or until it returns false.
  virtual void watch(int fd, std::function<bool()> on_readable) = 0;
  /// The descriptor stays open: it is the caller's.
  virtual void unwatch(int fd) = 0;

  /// What libzmq and the kernel vouch for about the peer of a ROUTER that sent the message whose callback runs. Only
  /// inside an OnMessage; a DEALER's peer is whoever its address and its server key belong to.
  virtual PeerProof sender() const { return {}; }

  /// Counters since start.
  struct Stats {
    /// Messages dropped: bad frames or envelope, or the peer is in quarantine after ten such.
    std::uint64_t malformed = 0;
    /// CURVE handshakes that failed: clients we refused, servers that refused us; messages of keys that are no longer
    /// listed, or not for that peer's address.
    std::uint64_t refused = 0;
    std::uint64_t undeliverable = 0;
    std::uint64_t received = 0;
    std::uint64_t sent = 0;
    /// Thrown by callbacks; the third within 10 s aborts the process.
    std::uint64_t exceptions = 0;
    /// Longest time between two polls.
    double longest_turn_s = 0;
  };
  /// Any thread; counters are read one by one, not as of one moment.
  virtual Stats stats() const = 0;
};

}  // namespace troupe::comm
