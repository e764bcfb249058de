#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file_descriptor.h"
#include "base/result.h"
#include "comm/bridge/bridge_hub.h"
#include "comm/bridge/bridge_message.h"
#include "comm/bridge/direct_connection.h"

namespace troupe::comm {

/// Internal to comm/bridge: the workers, leases and questions of one hub, each by its number, and what is to be sent.
/// Not thread-safe: the hub holds its lock around every call.
class SessionTable {
 public:
  using Clock = std::chrono::steady_clock;

  /// A worker from its HELLO to its end.
  struct Session {
    /// Of the connection that it came by.
    std::string peer;
    BridgeHello hello;
    /// Closed: cannot be watched.
    base::FileDescriptor process;
    Clock::time_point heard;
    std::int64_t leases = 0;
    bool has_answered = false;
  };
  /// Whose environments a lease holds, and why they are lost.
  struct Lease {
    std::int64_t session = 0;
    std::string worker;
    /// Of a worker that shares memory; else 0.
    std::int64_t sharing_pid = 0;
    std::optional<Error> gone = {};
    /// Carries the lease's questions; null: ZeroMQ does. Stays until the lease is released.
    std::unique_ptr<DirectConnection> direct = {};
  };
  /// A question whose asker waits for `answered`.
  struct Call {
    std::int64_t session = 0;
    /// It makes environments: other questions to the worker may have to wait for it.
    bool makes = false;
    /// When the worker may have begun with it, as far as is known.
    Clock::time_point begun = Clock::now();
    std::condition_variable answered = {};
    std::optional<Result<WireMap>> answer = {};
  };
  struct Outgoing {
    std::string peer;
    std::vector<std::byte> message;
    /// 0: of none.
    std::int64_t session = 0;
  };
  struct Gone {
    std::string name;
    Error why;
  };

  const std::map<std::int64_t, Session>& sessions() const { return sessions_; }
  std::int64_t num_leases() const { return static_cast<std::int64_t>(leases_.size()); }
  /// Whether a worker ever came.
  bool has_begun() const { return last_session_ > 0; }
  /// Null: over, or never begun.
  Session* find(std::int64_t session);

  /// Begins a session and welcomes its worker; others of its name or connection are over.
  void begin(Session session);
  /// Ends a session, if it is not over yet: its worker is told, its leases are lost, its questions are answered with
  /// `why`.
  void end(std::int64_t session, const Error& why);

  /// A lease from the worker that has the fewest, of which there is one. Returns its number.
  std::int64_t lease();
  const Lease& lease(std::int64_t number) const { return leases_.at(number); }
  void release(std::int64_t number);
  /// Sends questions of a lease by this connection from now on.
  void connect(std::int64_t lease, DirectConnection direct);

  /// Sends the question of `call`, which lives until it is answered or forgotten, to the worker of `lease`.
  void ask(std::int64_t request, Call& call, std::int64_t lease, std::string_view type, WireMap body);
  /// The call gave up.
  void forget(std::int64_t request) { calls_.erase(request); }
  /// Open questions that make environments.
  std::int64_t num_making() const;
  /// Whether the worker has another open question that makes environments, which it may answer first.
  bool may_wait_for_making(std::int64_t request) const;
  /// Whether a call of this session is open.
  bool is_asked(std::int64_t session) const;
  /// Gives a call its answer. False: no open call of this session has that request number.
  bool answer(std::int64_t request, std::int64_t session, Result<WireMap> answer);

  void post(const std::string& peer, std::int64_t session, BridgeMessage message);
  /// Messages posted, in order, and workers gone, since the last call.
  std::vector<Outgoing> take_outgoing() { return std::exchange(outgoing_, {}); }
  std::vector<Gone> take_gone() { return std::exchange(gone_, {}); }

 private:
  std::map<std::int64_t, Session> sessions_;
  std::map<std::int64_t, Lease> leases_;
  std::map<std::int64_t, Call*> calls_;
  std::vector<Outgoing> outgoing_;
  std::vector<Gone> gone_;
  std::int64_t last_session_ = 0, last_lease_ = 0;
};

}  // namespace troupe::comm
