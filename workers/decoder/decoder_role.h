#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "base/result.h"
#include "comm/channel/channel.h"
#include "comm/control/actor_identity.h"
#include "comm/control/outbox.h"
#include "data/sampling/split.h"
#include "workers/stream/producer_loop.h"

namespace troupe::workers {

/// Fills `slot` with the sample at `position` of a split; returns the bytes written. Errors name the file and the
/// cause; their text reaches the learner as Item::error.
using BuildSample = std::function<Result<std::size_t>(Split split, std::int64_t position, std::span<std::byte> slot)>;

/// A decoder: dials every feed it is told of, and makes the samples they give credit for, one at a time.
/// One thread per feed waits for credits; the work itself is serial, so that a decoder uses one core (`BuildSample`
/// is called by one thread at a time). It tells the controller how long it was idle for want of credit
/// (ProducerTimes): the stall of this end. A sample that cannot be made is sent as an item with its
/// error: the learner decides what that means.  Takes Peers: it dials addresses that are new and closes those that
/// are not listed any more. Sends ActorUp at start() and ProducerTimes to the controller. A connection
/// that fails is not dialled again until its address comes anew.
class DecoderRole final {
 public:
  /// Reports its times after every `report_seconds` of them.
  DecoderRole(ActorIdentity identity, BuildSample build, ConsumerDial dial, Outbox outbox, double report_seconds = 2);

  void start();
  void handle(const std::string& from, const Message& message);

 private:
  using Clock = std::chrono::steady_clock;
  void dial_feeds(const Peers& peers);
  /// Any thread; one builds at a time.
  Item produce(const Credit& credit, std::span<std::byte> slot);
  void count(Clock::time_point begin, Clock::time_point end);  // requires build_mutex_

  const ActorIdentity identity_;
  const BuildSample build_;
  const ConsumerDial dial_;
  const Outbox outbox_;
  const double report_seconds_;
  std::mutex build_mutex_;
  Clock::time_point last_end_{};                // guarded by build_mutex_, as the next two; zero before the first item
  double idle_seconds_ = 0, busy_seconds_ = 0;  // since the last report
  // By address. Last: their threads use the rest.
  std::map<std::string, std::unique_ptr<ProducerLoop>> connections_;
};

}  // namespace troupe::workers
