#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "actors/mailbox.h"
#include "comm/control/io_loop.h"

namespace troupe {

/// Delivers letters by name: to an actor of this process, or as an envelope over a socket of the I/O loop (control-plane.md 18).
/// The CAF companion of comm/control/io_loop.h. Thread-safe. One per process; outlives its actors, dies before the loop.
class Bridge {
 public:
  /// `self` stands in envelopes of letters without a sender.
  Bridge(IoLoop& loop, std::string self, std::uint64_t incarnation);

  void add_local(const std::string& name, const MailActor& actor);
  void remove_local(const std::string& name);
  /// Letters for `name` leave through this socket and peer.
  void add_route(const std::string& name, SocketId socket, const std::string& routing_id);
  void remove_route(const std::string& name);
  /// Where letters for unknown names go: upwards, from a host to its node, from a node to the controller.
  void set_default_route(SocketId socket);

  /// For sockets of the loop: delivers locally or passes on. Learns the way back to the sender from ROUTER sockets.
  /// `may_speak_for` limits whose letters a socket brings; others are dropped and counted.
  using Admission = std::function<bool(const std::string& from, const std::string& routing_id)>;
  IoLoop::OnMessage receiver(Admission may_speak_for = {});

  /// Never blocks. A letter that nobody can take is logged and dropped: whoever waits for its answer has a deadline.
  void send(const Letter& letter);

 private:
  struct Route {
    SocketId socket;
    std::string routing_id;
  };
  std::optional<Route> route_to(const std::string& name);
  void receive(SocketId socket, const std::string& routing_id, Envelope envelope, std::vector<std::byte> payload);

  IoLoop& loop_;
  const std::string self_;
  const std::uint64_t incarnation_;
  std::mutex mutex_;
  std::map<std::string, MailActor> locals_;
  std::map<std::string, Route> routes_;
  std::optional<SocketId> default_route_;
};

}  // namespace troupe
