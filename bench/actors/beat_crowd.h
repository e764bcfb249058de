#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "bench/actors/beat_servers.h"
#include "comm/control/curve_keys.h"
#include "comm/control/messages.h"
#include "comm/control/zmq_handles.h"

namespace troupe::bench {

/// Nodes of one process, each a DEALER of its own with CURVE, that beat to one server: the bytes are those of a
/// Heartbeat in its envelope, whoever reads them. One thread; functions throw std::runtime_error.
class BeatCrowd {
 public:
  /// Dials. Each node waits for its answer to Join where `joins`.
  BeatCrowd(const comm::Token& token, int nodes, bool joins);

  /// So many beats in all, one of each node under way at a time; how long it took.
  std::chrono::duration<double> flood(int beats);
  /// One beat at a time, of one node: what each took, in microseconds.
  std::vector<double> one_by_one(int beats);
  /// Every node beats once a second, evenly spread.
  void at_pace(int seconds);

  /// Of a heartbeat's answer.
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
