#pragma once

#include "workers/rollout/published_weights.h"

namespace troupe::workers {

/// Which of the versions that arrive are evaluated, one at a time: whatever arrives while another is played is left
/// out, but for the last step's, which waits. Not thread-safe.
class EvaluationQueue {
 public:
  /// Of the last step; those that were evaluated before are not evaluated again where their group sends them again.
  explicit EvaluationQueue(std::int64_t last_version) : last_version_(last_version) {}

  /// An evaluation is under way (an earlier process began it), or was the newest that ended.
  void goes_on(std::uint64_t fence, std::int64_t version);
  void was_made(std::uint64_t fence, std::int64_t version);
  /// A version is there. False: it is left out, because another one is played.
  bool offer(PublishedWeightsPtr weights);
  /// The version to play now, which is under way from here on; null: none.
  PublishedWeightsPtr take();
  /// What was under way has ended.
  void ended() { is_busy_ = false; }

 private:
  bool is_known(const PublishedWeights& weights) const {
    return weights.fence < fence_ || (weights.fence == fence_ && weights.version <= version_);
  }

  const std::int64_t last_version_;
  PublishedWeightsPtr next_;
  bool is_busy_ = false;
  /// Of the newest version that was taken.
  std::uint64_t fence_ = 0;
  std::int64_t version_ = -1;
};

}  // namespace troupe::workers
