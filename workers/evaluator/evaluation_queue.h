#pragma once

#include "workers/rollout/published_weights.h"

namespace troupe::workers {

/// Which of the versions that arrive are evaluated, one at a time: whatever arrives while another is played is left
/// out, but for the last step's, which waits, and for those of a group that went back, which end what is played. Not
/// thread-safe.
class EvaluationQueue {
 public:
  /// Of the last step; those that were evaluated before are not evaluated again where their group sends them again.
  explicit EvaluationQueue(std::int64_t last_version) : last_version_(last_version) {}

  /// An evaluation is under way (an earlier process began it), or was the newest that ended.
  void goes_on(std::uint64_t fence, std::int64_t version);
  void was_made(std::uint64_t fence, std::int64_t version);
  /// A version is there. False: it is left out, because another one is played. One of a newer group and no later step
  /// than that voids it, and is played instead.
  bool offer(PublishedWeightsPtr weights);
  /// The version to play now, which is under way from here on; null: none.
  PublishedWeightsPtr take();
  /// Nobody waits for what is under way: it is to end soon.
  bool is_void() const { return is_void_; }
  /// What was under way has ended.
  void ended() { is_busy_ = is_void_ = false; }

 private:
  bool is_known(const PublishedWeights& weights) const {
    return weights.fence < fence_ || (weights.fence == fence_ && weights.version <= version_);
  }

  const std::int64_t last_version_;
  PublishedWeightsPtr next_;
  bool is_busy_ = false, is_void_ = false;
  /// Of the newest version that was taken.
  std::uint64_t fence_ = 0;
  std::int64_t version_ = -1;
};

}  // namespace troupe::workers
