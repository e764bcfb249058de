#pragma once

#include <memory>
#include <string>

#include "bench/actors/ping_pong.h"

namespace troupe::bench {

class PostOffice;

/// Heartbeats from one detached actor to another, each sent when the acknowledgement of the one before has come. Times
/// run from handing a control message to the Bridge to the handler of its answer. Bridge, loop and sockets are those
/// of a job. One thread at a time; functions throw std::runtime_error.
class ActorPingPong {
 public:
  /// `endpoint`: where serve_actor_echo() of another process listens, or soon will.
  explicit ActorPingPong(const std::string& endpoint);
  ~ActorPingPong();

  /// Both actors in this process: control messages never leave it and are not encoded.
  RoundTrips run_local(const PingPlan& plan);
  /// The other actor in the echo process: Bridge, loop and DEALER here, ROUTER, loop and Bridge there, and back.
  RoundTrips run_remote(const PingPlan& plan);

 private:
  RoundTrips run(const std::string& target, const PingPlan& plan);
  std::unique_ptr<PostOffice> post_;
};

/// Body of the actor echo process: an actor that answers every Heartbeat with a HeartbeatAck, until SIGTERM. Call
/// before any thread runs. Returns an exit code.
int serve_actor_echo(const std::string& endpoint);

/// Encoded size of the messages above.
PayloadBytes heartbeat_payload_bytes();

}  // namespace troupe::bench
