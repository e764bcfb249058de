#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "bench/actors/beat_servers.h"
#include "bench/actors/ping_pong.h"
#include "comm/control/curve_keys.h"
#include "comm/control/messages.h"
#include "comm/control/zmq_handles.h"

namespace troupe::bench {

/// Many nodes in one process, each a DEALER of its own with CURVE, that send heartbeats to one server. The controller
/// and the raw server get the same bytes: a Heartbeat in its envelope. One thread; functions throw std::runtime_error.
class BeatCrowd {
 public:
  /// Connects every node and waits for one answer each: to a Join where `joins`, else to a heartbeat.
  BeatCrowd(const comm::Token& token, int nodes, bool joins);

  /// Sends `beats` in all, one of each node under way at a time; how long it took.
  std::chrono::duration<double> flood(int beats);
  /// One beat at a time, of one node: what each took, in microseconds.
  RoundTrips one_by_one(int beats);
  /// Every node beats once a second, evenly spread.
  void at_pace(int seconds);

  /// The size of a heartbeat's answer.
  static FrameBytes answer_bytes();

 private:
  struct Node {
    std::string address;
    comm::ZmqSocket line;
  };
  void send(Node& node, const comm::Message& message);
  void beat(Node& node);
  /// Reads one answer; false: there is none.
  static bool receive(Node& node, int flags);
  /// Waits for answers; the nodes that have one.
  std::vector<std::size_t> wait(std::chrono::milliseconds patience);

  comm::ZmqContext context_;
  std::vector<Node> nodes_;
  std::vector<zmq_pollitem_t> items_;
  std::uint64_t sequence_ = 1'000'000;  // as many bytes on the wire from the first beat to the last
};

}  // namespace troupe::bench
