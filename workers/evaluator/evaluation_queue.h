#pragma once

#include "workers/rollout/published_weights.h"

namespace troupe::workers {

/// Which of the versions that arrive are evaluated, one at a time: whatever arrives while another is played is left
/// out, but for the last step's, which waits, and for those of a group that went back, which end what is played. Not
/// thread-safe.
class EvaluationQueue {
 public:
  /// `last_version`: of the last step. A version that was evaluated is not evaluated again when its group sends it
  /// again.
  explicit EvaluationQueue(std::int64_t last_version) : last_version_(last_version) {}

  /// An earlier process began the evaluation of this version, which goes on.
  void goes_on(std::uint64_t fence, std::int64_t version);
  /// The newest evaluation that an earlier process reported is of this version.
  void was_made(std::uint64_t fence, std::int64_t version);
  /// A version is there. False: it is left out, because another one is played. One of a newer group and no later step
  /// than that voids it, and is played instead.
  bool offer(PublishedWeightsPtr weights);
  /// Begins the next evaluation: its weights; null: none is due.
  PublishedWeightsPtr take();
  /// The evaluation under way is void, because its group went back; it is to be cut off.
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
