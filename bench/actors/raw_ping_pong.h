#pragma once

#include <string>

#include "base/namespaces.h"
#include "bench/actors/ping_pong.h"
#include "comm/control/zmq_handles.h"

namespace troupe::bench {

/// The floor: a blocking DEALER that sends bytes to the blocking ROUTER of serve_raw_echo() and waits for as many as an
/// answer has. No envelope, no encoding, no loop. One thread at a time; functions throw std::runtime_error.
class RawPingPong {
 public:
  RawPingPong(const std::string& endpoint, PayloadBytes bytes);
  RoundTrips run(const PingPlan& plan);

 private:
  const PayloadBytes bytes_;
  ZmqContext context_;
  ZmqSocket dealer_;
};

/// Body of the raw echo process: answers every message with `answer_bytes` bytes until killed. Returns an exit code.
int serve_raw_echo(const std::string& endpoint, std::size_t answer_bytes);

}  // namespace troupe::bench
