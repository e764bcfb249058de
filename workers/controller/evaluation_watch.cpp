#include "workers/controller/evaluation_watch.h"

#include <algorithm>

#include "placement/evaluation.h"
#include "placement/roles.h"
#include "workers/controller/effects.h"

namespace troupe::workers {

void EvaluationWatch::group_formed(std::uint64_t fence, std::int64_t resume_step) {
  for (auto& [earlier, least] : least_since_) least = std::min(least, resume_step);
  least_since_[fence] = resume_step;
  newest_ = std::min(newest_, resume_step);
  if (resume_step >= job_.training.steps) return;
  has_last_ = has_begun_last_ = false;
  await_no_longer();
}

bool EvaluationWatch::counts(std::uint64_t fence, std::int64_t step) const {
  const auto next = least_since_.upper_bound(fence);
  return next == least_since_.end() || step <= next->second;
}

bool EvaluationWatch::begun(const EvalBegun& begun) {
  const std::pair of(begun.fence, begun.step);
  starts_ = of == begun_ ? starts_ + 1 : 1;
  begun_ = of;
  if (begun.step >= job_.training.steps && counts(begun.fence, begun.step)) has_begun_last_ = true;
  return starts_ > 1 && starts_ <= kMostEvaluationStarts + 1;
}

EvalReport EvaluationWatch::ended(EvalReport report) {
  const std::int64_t every = job_.eval.every;
  const std::int64_t skipped = every > 0 ? (report.step - 1) / every - newest_ / every : 0;
  report.metrics[kSkippedEvaluations] = static_cast<double>(std::max<std::int64_t>(0, skipped));
  newest_ = std::max(newest_, report.step);
  has_last_ = has_last_ || report.step >= job_.training.steps;
  return report;
}

void EvaluationWatch::await(TimePoint now) {
  if (!awaited_since_) awaited_since_ = now;
}

bool EvaluationWatch::is_overdue(TimePoint now) const {
  return awaited_since_ && now - *awaited_since_ > job_.eval.timeout;
}

EvalReport EvaluationWatch::give_up_last(std::uint64_t fence) {
  return ended({.actor = kEvaluatorActor,
                .fence = fence,
                .step = job_.training.steps,
                .metrics = {{"eval/num_trajectories", 0}, {"eval/lost", static_cast<double>(job_.eval.episodes)}}});
}

}  // namespace troupe::workers
