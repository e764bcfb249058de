#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/result.h"
#include "comm/channel/channel.h"
#include "workers/rollout/published_weights.h"
#include "workers/rollout/trajectory_request.h"

namespace troupe::workers {

/// The rollout worker's end: puts the ranks' buckets together into whole versions beside those in use. Who acts
/// holds a PublishedWeightsPtr; a newer version never changes the memory under it. Memory is reused once nobody acts
/// with it: with one version kept there are two sets of buffers. Thread-safe.
///
/// Left out, with a warning in the log: buckets of another policy (layout hash), damaged ones, buckets out of order.
/// Buckets of an older fence than the newest seen are ignored; versions that can no longer become whole are
/// forgotten. Each rank has two credits at most: one bucket is copied while the next one is on its way.
class WeightReceiver {
 public:
  struct Options {
    /// Whole versions that find() may still be asked for: rollout.staleness + 2 with exact versions.
    std::size_t keep = 1;
  };
  /// `on_new` is called on the channel's thread, under no lock, after a version became whole.
  WeightReceiver(const std::shared_ptr<const PolicyNet>& net, Options options, std::function<void()> on_new = {});

  /// Callbacks for open_consumer; the receiver must outlive the consumer.
  ChannelConsumer::Callbacks callbacks();
  /// The end whose slots are granted to learners; once, after open_consumer. Not owned.
  void set_consumer(ChannelConsumer* consumer);
  /// The learner's exit is confirmed: its slots are free again.
  void producer_gone(const std::string& producer);

  /// The newest whole version; null before the first.
  PublishedWeightsPtr newest() const;
  /// Weights of that fence that satisfy the request (its version, or with `exact` false that or a newer one), the
  /// newest such; null: not there yet.
  PublishedWeightsPtr find(std::uint64_t fence, const TrajectoryRequest& request) const;
  /// As find(), waiting. Errors: deadline_exceeded (names what is there).
  Result<PublishedWeightsPtr> wait_for(std::uint64_t fence, const TrajectoryRequest& request,
                                       std::chrono::milliseconds deadline) const;

  /// Whole versions, buckets taken, buckets or versions left out.
  struct Stats {
    std::int64_t versions = 0, buckets = 0, ignored = 0;
  };
  Stats stats() const;

 private:
  /// A version that is not whole yet.
  struct Assembly {
    int world = 1;
    std::shared_ptr<PublishedWeights> weights;
    /// Rank 0's bytes behind its shards.
    std::string state;
    /// Bytes by rank; a rank that has sent nothing is absent.
    std::map<int, std::uint64_t> missing;
    bool is_whole() const;
  };
  /// Memory of versions that nobody acts with any more, for further ones. Outlives the receiver while somebody acts.
  struct Spares;

  void on_item(const std::string& producer, const Item& item);
  // Requires mutex_; true: a version became whole.
  bool take(const WeightBucket& bucket, std::span<const std::byte> bytes);
  std::shared_ptr<PublishedWeights> take_spare();
  // Requires mutex_.
  Assembly& assembly_of(const WeightBucket& bucket);
  // Requires mutex_; false: damaged.
  bool finish(std::int64_t version);
  // Requires mutex_.
  void grant_all();
  PublishedWeightsPtr find_locked(std::uint64_t fence, const TrajectoryRequest& request) const;

  const WeightStream stream_;
  const std::uint64_t layout_hash_;
  const Options options_;
  const std::function<void()> on_new_;
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  ChannelConsumer* consumer_ = nullptr;
  /// Credits that each has.
  std::map<std::string, std::uint32_t> learners_;
  std::uint64_t fence_ = 0;
  std::map<std::int64_t, Assembly> assemblies_;
  /// Newest last.
  std::deque<std::shared_ptr<PublishedWeights>> whole_;
  const std::shared_ptr<Spares> spares_;
  std::uint64_t serial_ = 0;
  Stats stats_;
};

}  // namespace troupe::workers
