#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "comm/channel/channel.h"
#include "workers/rollout/published_weights.h"
#include "workers/stream/consumer_dial.h"

namespace troupe {

/// The learner's end of weight publication: keeps copies of this rank's newest acting shards and sends them to every rollout
/// worker that it is told of, one thread each, while the next step computes. Never blocks the trainer: a version is copied, and
/// a worker that is slow gets the newest one next, the versions between are left out (with Options::keep above 1 only those
/// older than the newest `keep`). A worker that joins gets what is kept. Thread-safe.
class WeightPublisher {
 public:
  struct Options {
    std::string producer;  ///< this learner's instance name, "learner/0#0"
    std::size_t keep = 1;  ///< with exact versions: rollout.staleness + 1
  };
  using Dial = ConsumerDial;

  WeightPublisher(const PolicyNet& net, Options options, Dial dial);
  ~WeightPublisher();

  /// The weight channels of all rollout workers; those that are not listed any more are left.
  void set_peers(const std::vector<std::string>& addresses);
  /// A group has formed: what was published under another fence is not sent any more.
  void begin(std::uint64_t fence, int world, int rank);
  /// This rank's shards of the acting units, in the order of PolicyNet::acting_units(), FlatLayout::shard(world) elements each.
  /// Rank 0 gives the statistics that belong to them, other ranks null. `version`: committed steps behind them; the first
  /// is GroupPlan::resume_step, right after begin().
  void publish(std::int64_t version, std::span<const std::span<const float>> shards, const NormaliserState* normaliser);

  struct Stats {
    std::int64_t versions = 0;  ///< published
    std::int64_t sent = 0;      ///< versions that reached a worker, summed over workers
    std::int64_t bytes = 0;
    double wait_seconds = 0;  ///< waiting for workers' credits, summed over workers
  };
  Stats stats() const;

 private:
  /// One version of this rank's shards, ready to be cut into buckets.
  struct Run {
    std::uint64_t fence = 0;
    std::int64_t version = 0;
    int world = 1, rank = 0;
    std::vector<std::byte> bytes;
  };
  class Connection;
  std::shared_ptr<const Run> next_for(std::uint64_t fence, std::int64_t after);  // requires mutex_

  const WeightStream stream_;
  const std::uint64_t layout_hash_;
  const Options options_;
  const Dial dial_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t fence_ = 0;
  int world_ = 1, rank_ = 0;
  std::deque<std::shared_ptr<const Run>> kept_;  ///< of fence_, oldest first
  std::shared_ptr<Run> spare_;                   ///< memory of a version that nobody sends any more
  Stats stats_;
  std::map<std::string, std::unique_ptr<Connection>> connections_;  ///< by address; only set_peers touches it
};

}  // namespace troupe
