#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "actors/mailbox.h"
#include "actors/peer_judges.h"
#include "base/log_limiter.h"
#include "comm/control/io_loop.h"
#include "comm/control/ordered_delivery.h"

namespace troupe::actors {

/// Delivers control messages by name: to the mailbox of an actor of this process, or as an envelope over a socket of
/// the I/O loop (docs/wire.md#envelope). A name is looked up among local actors, then routes, then the default route.
/// What goes over a socket arrives once and in order however often the connection breaks (OrderedDelivery), but for
/// Join, Joined and heartbeats, which their senders repeat themselves. Thread-safe: one mutex, never held during a
/// send. One per process; outlives its actors and the loop.
class Bridge {
 public:
  /// `self` stands in envelopes of control messages without a sender; `incarnation` in all of them. `loop` is not
  /// owned.
  Bridge(IoLoop& loop, std::string self, std::uint64_t incarnation, OrderedDelivery::Limits limits = {});

  /// Messages for `name` go to this actor; a second call replaces the first. The actor is kept alive by it.
  void add_local(const std::string& name, const MailboxActor& actor);
  /// Messages for `name` take the route that receiver() has learnt, if there is one. Call before the actor ends.
  void remove_local(const std::string& name);
  /// Where messages for unknown names go: upwards, from a host to its node, from a node to the controller.
  void set_default_route(SocketId socket);

  /// The callback for sockets of the loop. It decodes what is for a local actor, passes the rest on unread, and learns
  /// from ROUTER sockets the way back to the sender. It drops what the sender has no right to say, with a warning a
  /// minute and peer: `judge` knows no party for the sender; this party may not send the type to the addressee
  /// (may_send); the message tells of another actor than its sender. It also drops, with a warning, bytes
  /// that do not decode, names without a route, and what would leave by the way it came.
  IoLoop::OnMessage receiver(PeerJudge judge);

  /// Never blocks. A message that cannot be encoded is logged and dropped. Its sender hears nothing of that; a wait for
  /// an answer has a deadline of its own.
  void send(const ControlMessage& control);
  /// Waits until every addressee has had all that was sent to it. False: not within `deadline`.
  bool wait_until_heard(std::chrono::milliseconds deadline);
  /// The actor or node of this name has ended: nothing is sent to it any more, and what still comes of it is dropped.
  void forget(const std::string& name);

 private:
  /// Where a name is reached: a socket and, of a ROUTER, which of its peers.
  struct Route {
    SocketId socket;
    std::string routing_id;
  };
  /// The route of a name, else the default route. Requires mutex_.
  std::optional<Route> route_to(const std::string& name);
  /// Whether the message is within its sender's rights. On the loop's thread.
  bool is_allowed(const PeerJudge& judge, const std::string& routing_id, const Envelope& envelope);
  void refuse(const std::string& peer, const Envelope& envelope, const std::string& why);
  /// An envelope of the loop: to a local actor, or on along its route.
  void receive(SocketId socket, const std::string& routing_id, Envelope envelope, std::vector<std::byte> payload);
  void give(const MailboxActor& actor, const Packet& packet);
  /// Sends a packet along its route, or drops it with a warning.
  void pass(Packet packet, const std::optional<Route>& route);
  /// Sends what is due by now, and comes back for the rest.
  void send_due();
  /// With mutex_: makes sure that send_due() runs by `at`.
  void come_back(OrderedDelivery::Time at);

  IoLoop& loop_;
  const std::string self_;
  const std::uint64_t incarnation_;
  std::mutex mutex_;
  std::map<std::string, MailboxActor> locals_;
  std::map<std::string, Route> routes_;
  std::optional<SocketId> default_route_;
  OrderedDelivery delivery_;
  // What came may have said that a message was had.
  std::condition_variable heard_;
  // When the loop's earliest timer runs send_due().
  std::optional<OrderedDelivery::Time> comes_back_;
  LogLimiter unreachable_;
  LogLimiter refusals_;  // the loop's thread only
};

}  // namespace troupe::actors
