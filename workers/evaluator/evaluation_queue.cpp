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
  const bool went_back = is_busy_ && weights->fence > fence_ && weights->version <= version_;
  if (is_busy_ && !went_back && weights->version != last_version_) return false;
  is_void_ = is_void_ || went_back;
  next_ = std::move(weights);
  return true;
}

PublishedWeightsPtr EvaluationQueue::take() {
  if (is_busy_ || !next_) return nullptr;
  goes_on(next_->fence, next_->version);
  return std::exchange(next_, nullptr);
}

}  // namespace troupe::workers
