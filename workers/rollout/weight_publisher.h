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
#include "workers/stream/producer_loop.h"

namespace troupe::workers {

/// The learner's end of weight publication: keeps copies of this rank's newest acting shards and sends them to every
/// rollout worker that it is told of, one thread each, while the next step computes. Thread-safe.
///
/// It never blocks the trainer: publish() copies, and a worker that is slow gets the newest version next; versions
/// between are left out (with Options::keep above 1 only those older than the newest `keep`). A version that is
/// begun is sent to its end. A worker that joins gets what is kept. An evaluator gets the versions that are to be
/// evaluated alone, of which the newest is kept. Format: WeightStream, WeightBucket.
class WeightPublisher {
 public:
  struct Options {
    /// This learner's instance name, "learner/0#0".
    std::string producer;
    /// With exact versions: rollout.staleness + 1.
    std::size_t keep = 1;
  };

  WeightPublisher(const PolicyNet& net, Options options, ConsumerDial dial);
  ~WeightPublisher();

  /// The weight channels of all rollout workers and evaluators; those of `evaluators` get versions to be evaluated and
  /// no others. Connections to those that are not listed any more are closed. One thread.
  void set_peers(const std::vector<std::string>& addresses, const std::vector<std::string>& evaluators);
  /// A group has formed: what was published under another fence is not sent any more.
  void begin(std::uint64_t fence, int world, int rank);
  /// This rank's shards of the acting units, in the order of PolicyNet::acting_units(), FlatLayout::shard(world)
  /// elements each. Rank 0 gives the statistics that belong to them, other ranks null. `version`: committed steps
  /// behind them; the first is GroupPlan::resume_step, right after begin(). Versions of a fence ascend. Another
  /// number or size of shards is an invariant violation. `is_evaluated`: it is one to be evaluated, on every rank.
  void publish(std::int64_t version, std::span<const std::span<const float>> shards, const NormaliserState* normaliser,
               bool is_evaluated);

  struct Stats {
    /// Published.
    std::int64_t versions = 0;
    /// Versions that reached a worker, summed over workers.
    std::int64_t sent = 0;
    /// Of those versions, headers of buckets not counted.
    std::int64_t bytes = 0;
    /// Waiting for workers' credits, summed over workers.
    double wait_seconds = 0;
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
  // Requires mutex_. The oldest version kept that is of another fence or newer than `after`, of those to be evaluated
  // where an evaluator asks; null: nothing to send.
  std::shared_ptr<const Run> next_for(std::uint64_t fence, std::int64_t after, bool is_evaluator) const;

  const WeightStream stream_;
  const std::uint64_t layout_hash_;
  const Options options_;
  const ConsumerDial dial_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t fence_ = 0;
  int world_ = 1, rank_ = 0;
  /// Of fence_, oldest first.
  std::deque<std::shared_ptr<const Run>> kept_;
  /// Of fence_, the newest one to be evaluated.
  std::shared_ptr<const Run> evaluated_;
  /// Memory of a version that nobody sends any more.
  std::shared_ptr<Run> spare_;
  Stats stats_;
  /// By address; only set_peers touches it.
  std::map<std::string, std::unique_ptr<Connection>> connections_;
};

}  // namespace troupe::workers
