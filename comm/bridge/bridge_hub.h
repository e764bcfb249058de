#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "comm/bridge/bridge_message.h"
#include "comm/channel/arena.h"

namespace troupe::comm {

/// What a worker says of itself when it comes.
struct BridgeHello {
  /// Unique: a second worker of a name replaces the first.
  std::string name;
  /// Its environment, the keyword arguments of it as JSON, and what it observes and takes as JSON.
  std::string env, options, spec;
  std::int64_t pid = 0;
  /// It can share memory with a hub that sees its process.
  bool has_shm = false;
};

struct BridgeHubOptions {
  /// ipc://PATH or tcp://127.0.0.1:PORT; empty: an address of its own that takes processes of its user alone.
  std::string bind = {};
  /// Of one message of a worker.
  std::size_t max_message_bytes = std::size_t{1} << 20;
  /// Expected number of workers. While fewer have come and no outage is announced, a lease waits up to ten seconds for
  /// the others; without that wait the first workers would get all leases.
  std::size_t awaited = 1;
  /// A worker whose process cannot be watched counts as dead after this long without a beat of it.
  std::chrono::milliseconds liveness{10'000};
  /// Whether a worker is taken; the error is told to it. On the hub's thread: short, never blocking.
  std::function<Result<void>(const BridgeHello&)> accept = {};
  /// What is known of the end of a worker's process, which has just been seen; empty: nothing. On the hub's thread,
  /// under no lock.
  std::function<std::string(const std::string& name)> why_ended = {};
  /// A worker has given the first answer that is no error. As accept.
  std::function<void(const std::string& name)> on_answer = {};
  /// A worker is gone, and why. From any thread, never under a lock of the hub.
  std::function<void(const std::string& name, const Error& why)> on_gone = {};
};

/// Some environments of one worker. Goes back when it is destroyed.
class BridgeLease {
 public:
  virtual ~BridgeLease() = default;
  /// Asks the worker and waits for its answer, `making` longer where the question makes environments: the patience of
  /// questions behind it begins with its answer. One call at a time. Errors: deadline_exceeded, after which the worker
  /// is given up with all of its leases; aborted (the worker is gone), internal (it says that it failed, and goes on).
  virtual Result<WireMap> call(std::string_view type, WireMap body, std::chrono::milliseconds patience,
                               std::chrono::milliseconds making = {}) = 0;
  /// Of the worker, for messages.
  virtual const std::string& worker() const = 0;
  /// Asks the worker to make and share memory of `bytes` for this lease, with `arrays` [[name, dtype, shape, offset]]
  /// in it; the first 8 bytes hold the hub's nonce. The Arena stays valid when the worker has ended. The worker
  /// also connects for this lease where it can; call() then uses that connection, past the hub's thread. Errors:
  /// failed_precondition (the worker is on another machine, or cannot share memory); those of call() and
  /// Arena::attach_to.
  virtual Result<Arena> share(std::int64_t bytes, WireArray arrays, std::chrono::milliseconds patience) = 0;
};

/// The runtime's side of the bridge to simulators in other processes (docs/bridge.md): one ZeroMQ ROUTER to which
/// workers come, and leases of their environments. One thread of its own; methods may be called from any. Outlives its
/// leases.
///
/// A worker counts as gone when its process ends (watched where hub and worker share a process-id namespace), when it
/// says BYE, when it misses the deadline of a question, when another worker takes its name, or, if its process cannot
/// be watched, when its heartbeats stop while no question is open. All leases of a gone worker fail at once. The hub
/// drops late answers by their request number, and answers or drops messages of unknown peers.
class BridgeHub {
 public:
  /// Binds and starts; ipc://PATH is held by a lock on PATH.lock, which stays. Errors: invalid_argument (bind),
  /// unavailable (the address is taken, or cannot be kept to this user), resource_exhausted.
  static Result<std::unique_ptr<BridgeHub>> start(BridgeHubOptions options);
  /// Tells every worker to end, and waits half a second at most for their farewells.
  virtual ~BridgeHub() = default;

  /// Where workers connect.
  virtual const std::string& endpoint() const = 0;
  /// Leases `rows` environments from the worker that has the fewest leases, when there is one; from then on the worker
  /// has as long for each of them. Errors: deadline_exceeded, unavailable (there never was a worker, and the outage
  /// says why); those of BridgeLease::call.
  virtual Result<std::unique_ptr<BridgeLease>> lease(std::int64_t rows, std::chrono::milliseconds patience) = 0;
  /// Says why no worker can be started: calls of lease() that wait for a first worker fail with `why`. The next worker
  /// that comes ends the outage.
  virtual void announce_outage(const Error& why) = 0;

  struct Stats {
    /// Workers there are, and leases of theirs; calls of lease() that wait, and questions open that make environments.
    std::int64_t workers = 0, leases = 0, making = 0;
    /// Since the start: messages that could not be read or were not a worker's to send, answers that came too late.
    std::int64_t malformed = 0, late = 0;
  };
  virtual Stats stats() const = 0;
};

}  // namespace troupe::comm
