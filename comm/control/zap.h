#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "base/log_limiter.h"
#include "base/result.h"
#include "comm/control/client_keys.h"
#include "comm/control/zmq_handles.h"
#include "comm/front/zmtp_front.h"

namespace troupe::comm {

/// Domain of every CURVE server socket of Troupe.
inline constexpr const char* kZapDomain = "troupe";
/// Properties (zmq_msg_gets) of a message that came through a ZmtpFront: the number of its connection, and the address
/// of its peer ("10.0.0.1:51234"). Other messages of a CURVE server have them empty, whatever their peer says.
inline constexpr const char* kConnectionProperty = "Troupe-Connection";
inline constexpr const char* kAddressProperty = "Troupe-Address";

/// Answers libzmq's question "may this key connect?" (ZeroMQ RFC 27) for the CURVE servers of one context. Without it a
/// CURVE server takes every key, so it is bound before the first server socket. Lives on the loop's thread.
class ZapHandler {
 public:
  /// `refused` counts the clients turned away. Errors: unavailable.
  static Result<std::unique_ptr<ZapHandler>> bind(void* context, std::atomic<std::uint64_t>& refused);

  /// A REP at inproc://zeromq.zap.01, for the loop's poll.
  void* socket() const noexcept { return socket_.get(); }

  /// The keys that the server socket with this ZMQ_ROUTING_ID takes from here on. A server without an entry refuses
  /// everybody.
  void set_allowed(const std::string& server, std::shared_ptr<const ClientKeys> keys) {
    allowed_[server] = {.clients = std::move(keys)};
  }
  /// The server is reached through this front, which outlives the server's entry.
  void set_front(const std::string& server, const ZmtpFront& front) { allowed_.at(server).front = &front; }
  /// Why a peer at this address may not use the key there, for the log; empty: it may.
  std::string objection(const std::string& server, const std::string& key, const std::string& address) const;
  /// The server refuses everybody from here on.
  void forget(const std::string& server) { allowed_.erase(server); }
  /// One more key of a server, for the self-test; empty: none.
  void test_with(const std::string& server, const std::string& key) {
    if (const auto entry = allowed_.find(server); entry != allowed_.end()) entry->second.tested = key;
  }

  /// Answers all requests that are waiting.
  void answer_all();

  /// While set, refusals are neither counted nor logged (self-test).
  void set_quiet(bool quiet) { quiet_ = quiet; }

 private:
  ZapHandler(ZmqSocket socket, std::atomic<std::uint64_t>& refused) : socket_(std::move(socket)), refused_(refused) {}
  void answer_one();
  void note_refusal(const std::string& address, const std::string& why);

  ZmqSocket socket_;
  struct Server {
    std::shared_ptr<const ClientKeys> clients;
    /// The self-test's own; empty: none.
    std::string tested = {};
    const ZmtpFront* front = nullptr;
  };
  std::map<std::string, Server> allowed_;
  LogLimiter by_address_;
  std::atomic<std::uint64_t>& refused_;
  bool quiet_ = false;
};

/// Proves with two throw-away keys that the server bound at `endpoint` refuses an unlisted key and takes a listed one
/// (docs/wire.md#keys). Answers ZAP requests itself meanwhile; takes milliseconds.
/// Errors: failed_precondition (the socket is not protected), deadline_exceeded.
Result<void> test_curve_server(void* context, ZapHandler& zap, const std::string& server, const std::string& endpoint,
                               const std::string& server_public_key);

}  // namespace troupe::comm
