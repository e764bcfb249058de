#include "workers/evaluator/evaluation_queue.h"

#include <utility>

namespace troupe::workers {

void EvaluationQueue::was_made(std::uint64_t fence, std::int64_t version) {
  fence_ = fence;
  version_ = version;
}

void EvaluationQueue::goes_on(std::uint64_t fence, std::int64_t version) {
  was_made(fence, version);
  is_busy_ = true;
}

bool EvaluationQueue::offer(PublishedWeightsPtr weights) {
  if (is_known(*weights)) return true;
  if (is_busy_ && weights->version != last_version_) return false;
  next_ = std::move(weights);
  return true;
}

PublishedWeightsPtr EvaluationQueue::take() {
  if (is_busy_ || !next_) return nullptr;
  goes_on(next_->fence, next_->version);
  return std::exchange(next_, nullptr);
}

}  // namespace troupe::workers
