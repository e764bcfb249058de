#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

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

/// A decoder: dials every feed that Peers lists, and makes the samples that feeds give credit for. It makes as many
/// samples at a time as it has `builds`, each on one core; so many threads per feed wait for credits, and one thread at
/// a time calls a build. Each ProducerTimes sums over the builds how long they were idle for want of credit and how
/// long they worked. When a sample cannot be made, the item carries the error, and the learner decides what to do.
/// Takes Peers: the decoder dials new addresses and closes connections that Peers no longer lists. It sends ActorUp at
/// start(), and ProducerTimes, to the controller. It dials a failed connection again when Peers lists the address anew.
class DecoderRole final {
 public:
  /// Reports its times after every `report_seconds` of them.
  DecoderRole(ActorIdentity identity, std::vector<BuildSample> builds, ConsumerDial dial, Outbox outbox,
              double report_seconds = 2);

  void start();
  void handle(const std::string& from, const Message& message);

 private:
  using Clock = std::chrono::steady_clock;
  /// One of the builds.
  struct Maker {
    BuildSample build;
    bool is_idle = true;
  };
  void dial_feeds(const Peers& peers);
  /// Any thread; waits until a maker is idle. The feed reports a producer that keeps a sample too long (Feed::OnStuck).
  Item produce(const Credit& credit, std::span<std::byte> slot);
  Maker& take_maker();
  void give_back(Maker& maker);
  // The time since the last change, as all makers spent it; then what there is to tell. Both require mutex_.
  void count();
  void report();

  const ActorIdentity identity_;
  const ConsumerDial dial_;
  const Outbox outbox_;
  const double report_seconds_;
  std::mutex mutex_;
  std::condition_variable given_back_;
  std::vector<Maker> makers_;          // guarded by mutex_, as the next three, but for `build` of one that is taken
  Clock::time_point counted_until_{};  // zero before the first item
  double idle_seconds_ = 0, busy_seconds_ = 0;  // since the last report
  // By address. Last: their threads use the rest.
  std::map<std::string, std::unique_ptr<ProducerLoop>> connections_;
};

}  // namespace troupe::workers
