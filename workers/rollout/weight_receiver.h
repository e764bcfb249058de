#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "comm/channel/channel.h"
#include "workers/rollout/published_weights.h"
#include "workers/rollout/trajectory_request.h"

namespace troupe {

/// The rollout worker's end: puts the ranks' buckets together into whole versions beside those in use. Who acts holds a
/// PolicyWeightsPtr; a newer version never changes the memory under it. Buckets of an older fence than the newest seen are
/// ignored; versions that can no longer become whole are forgotten. Thread-safe.
class WeightReceiver {
 public:
  struct Options {
    std::size_t keep =
        1;  ///< whole versions that find() may still be asked for: rollout.staleness + 2 with exact versions
  };
  /// `on_new` is called on the channel's thread, under no lock, after a version became whole.
  WeightReceiver(std::shared_ptr<const PolicyNet> net, Options options, std::function<void()> on_new = {});

  /// Callbacks for open_consumer; the receiver must outlive the consumer.
  ChannelConsumer::Callbacks callbacks();
  void set_consumer(ChannelConsumer* consumer);
  /// The learner's exit is confirmed.
  void producer_gone(const std::string& producer);

  /// The newest whole version; null before the first.
  PolicyWeightsPtr newest() const;
  /// Weights of that fence that satisfy the request, the newest such; null: not there yet.
  PolicyWeightsPtr find(std::uint64_t fence, const TrajectoryRequest& request) const;
  /// As find(), waiting. Errors: deadline_exceeded (names what is there).
  Result<PolicyWeightsPtr> wait_for(std::uint64_t fence, const TrajectoryRequest& request,
                                    std::chrono::milliseconds deadline) const;

  struct Stats {
    std::int64_t versions = 0, buckets = 0, ignored = 0;
  };
  Stats stats() const;

 private:
  /// A version that is not whole yet.
  struct Assembly {
    int world = 1;
    std::shared_ptr<PolicyWeights> weights;
    std::string state;                     ///< rank 0's bytes behind its shards
    std::map<int, std::uint64_t> missing;  ///< bytes by rank; a rank that has sent nothing is absent
    bool is_whole() const;
  };
  /// Memory of versions that nobody acts with any more, for further ones. Outlives the receiver while somebody acts.
  struct Spares;
  struct Learner {
    std::set<std::uint32_t> slots;  ///< granted to it
  };

  void on_item(const std::string& producer, const Item& item);
  bool take(const WeightBucket& bucket,
            std::span<const std::byte> bytes);  // requires mutex_; true: a version became whole
  std::shared_ptr<PolicyWeights> take_spare();
  Assembly& assembly_of(const WeightBucket& bucket);  // requires mutex_
  bool finish(std::int64_t version);                  // requires mutex_; false: damaged
  void grant_all();                                   // requires mutex_
  PolicyWeightsPtr find_locked(std::uint64_t fence, const TrajectoryRequest& request) const;

  const WeightStream stream_;
  const std::uint64_t layout_hash_;
  const Options options_;
  const std::function<void()> on_new_;
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  ChannelConsumer* consumer_ = nullptr;
  std::vector<std::uint32_t> free_;
  std::map<std::string, Learner> learners_;
  std::uint64_t fence_ = 0;
  std::map<std::int64_t, Assembly> assemblies_;
  std::deque<std::shared_ptr<PolicyWeights>> whole_;  ///< newest last
  const std::shared_ptr<Spares> spares_;
  std::int64_t serial_ = 0;
  Stats stats_;
};

}  // namespace troupe
