#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/log_limiter.h"
#include "comm/control/callback_guard.h"
#include "comm/control/endpoint.h"
#include "comm/control/handshake_monitor.h"
#include "comm/control/io_loop.h"
#include "comm/control/strike_list.h"
#include "comm/control/zap.h"
#include "comm/front/zmtp_front.h"

namespace troupe::comm {

/// Counters that the loop writes and anybody reads.
struct LoopCounters {
  std::atomic<std::uint64_t> malformed{0}, refused{0}, undeliverable{0}, received{0}, sent{0};
  std::atomic<double> longest_turn_s{0};
  /// Relaxed: counters order nothing.
  static void add(std::atomic<std::uint64_t>& counter) { counter.fetch_add(1, std::memory_order_relaxed); }
};

/// A message on its way out.
struct Outgoing {
  Envelope envelope;
  /// The encoded envelope.
  std::vector<std::byte> frame;
  std::vector<std::byte> payload;
  std::chrono::steady_clock::time_point expires;
};

/// The sockets of one loop: opens, reads, writes and closes them. Everything on the loop's thread.
class SocketTable {
 public:
  /// `fronts` takes the fronts of closed sockets, which pass on what libzmq still sends. It outlives the context.
  SocketTable(void* context, ZapHandler& zap, CallbackGuard& guard, LoopCounters& counters,
              std::vector<std::unique_ptr<ZmtpFront>>& fronts)
      : context_(context), zap_(zap), guard_(guard), counters_(counters), closing_fronts_(fronts) {}

  struct Bound {
    SocketId id{};
    std::string endpoint;
  };
  /// As IoLoop::bind_router and connect_dealer.
  Result<Bound> bind(const std::string& endpoint, IoLoop::OnMessage on_message, const std::optional<CurveServer>& curve,
                     std::size_t max_payload);
  Result<SocketId> connect(const std::string& endpoint, const std::string& routing_id, IoLoop::OnMessage on_message,
                           const std::optional<CurveClient>& curve, std::size_t max_payload);
  void close(SocketId id);
  /// Offers the queued messages once more and closes everything; libzmq lingers 500 ms.
  void close_all();

  /// As IoLoop::send; a message never overtakes one that waits for the same peer.
  void send(SocketId id, const std::string& routing_id, Outgoing message);
  /// As IoLoop::sender.
  const PeerProof& sender() const { return sender_; }
  void report_undeliverable(SocketId id, const std::string& routing_id, const Envelope& envelope);
  void set_on_undeliverable(IoLoop::OnUndeliverable report) { on_undeliverable_ = std::move(report); }

  /// Appends the sockets, and the monitors of clients, in the order of their ids.
  void add_poll_items(std::vector<zmq_pollitem_t>& items) const;
  /// One round: at most 256 messages in per socket, queued messages out. Says whether messages are left to read.
  bool turn();
  /// A message waits for a ROUTER's peer: libzmq does not tell when there is room, so the loop looks again soon.
  bool must_retry_soon() const;

 private:
  /// Messages that a peer could not take yet, oldest first, and their bytes.
  struct Outbox {
    std::deque<Outgoing> messages;
    std::size_t bytes = 0;
  };
  struct OpenSocket {
    SocketId id{};
    bool is_router = false;
    bool is_ipc = false;
    bool closed = false;
    std::size_t max_payload = 0;
    /// ROUTER with CURVE: its name in the ZAP handler.
    std::string zap_name;
    std::string endpoint;
    IoLoop::OnMessage on_message;
    /// Peers with waiting messages only.
    std::map<std::string, Outbox> outboxes;
    /// ROUTER: peers that send rubbish.
    StrikeList strikes;
    /// ROUTER with CURVE on tcp: the front between libzmq's socket and the network.
    std::unique_ptr<ZmtpFront> front;
    ZmqSocket handle;
    std::unique_ptr<HandshakeMonitor> monitor;  // after handle: goes first
  };
  /// later: no room now; never: no such peer.
  enum class Sent : std::uint8_t { yes, later, never };

  Result<std::shared_ptr<OpenSocket>> open(int type, const std::string& endpoint, IoLoop::OnMessage on_message,
                                           std::size_t max_payload);
  /// Binds libzmq's socket where only this process can connect, and starts a front on the network.
  Result<void> bind_front(OpenSocket& socket, const Endpoint& endpoint);
  /// False when nothing is left to read. A malformed message is drained, counted and dropped.
  bool receive_one(OpenSocket& socket);
  /// Whether a ROUTER's peer, who sent the message under way from this address, may be heard: without CURVE every one,
  /// with it those whose key is listed now, for this address.
  bool is_listed(const OpenSocket& socket, const std::string& peer, const std::string& address,
                 std::uint64_t connection);
  void drop_malformed(OpenSocket& socket, const std::string& peer, const std::string& why);
  Sent try_send(OpenSocket& socket, const std::string& routing_id, Outgoing& message);
  void queue(OpenSocket& socket, const std::string& routing_id, Outgoing message);
  void flush(OpenSocket& socket);
  bool flush_peer(OpenSocket& socket, const std::string& routing_id, Outbox& outbox);
  void read_monitor(OpenSocket& socket);
  /// Callbacks may close sockets while the copy is walked.
  std::vector<std::shared_ptr<OpenSocket>> snapshot() const;

  void* context_;
  ZapHandler& zap_;
  CallbackGuard& guard_;
  LoopCounters& counters_;
  std::vector<std::unique_ptr<ZmtpFront>>& closing_fronts_;
  IoLoop::OnUndeliverable on_undeliverable_;
  std::map<SocketId, std::shared_ptr<OpenSocket>> sockets_;
  std::uint32_t next_id_ = 1;
  LogLimiter malformed_log_, undeliverable_log_, handshake_log_, unlisted_log_;
  /// Of the message under way.
  PeerProof sender_;
};

}  // namespace troupe::comm
