// Of JobController: evaluations that an evaluator makes beside training.
#include <fmt/format.h>

#include <utility>

#include "placement/roles.h"
#include "workers/controller/job_controller.h"

namespace troupe::workers {

void JobController::on(const std::string& from, const EvalBegun& m, TimePoint) {
  // The evaluator died while it played: the episode is counted as lost, and the death is no restart of the actor.
  if (evaluations_.begun(m)) restarts_.forgive(from);
  if (state_ == JobState::stopping || !evaluations_.counts(m.fence, m.step)) return;
  checkpoints_.on_evaluation_begun(m.step);
}

void JobController::evaluated_beside(const EvalReport& m, TimePoint now) {
  if (state_ == JobState::stopping || !evaluations_.counts(m.fence, m.step)) return;
  EvalReport ended = evaluations_.ended(m);
  ended.fence = group_.fence();
  effects_.evaluated(ended);
  checkpoints_.on_evaluation(ended);
  if (evaluations_.is_awaited() && !evaluations_.owes_last()) stop_everything(now);
}

void JobController::await_evaluation(TimePoint now) {
  evaluations_.await(now);
  has_stopped_sources_ = true;
  for (const std::string& role : elastic_roles(setup_.config)) launcher_.stop_all(role, "training is complete");
}

void JobController::start_stopped(TimePoint now) {
  if (!std::exchange(has_stopped_sources_, false)) return;
  const ClusterSnapshot cluster = pools_.cluster();
  for (auto& [name, actor] : actors_.rows()) {
    const std::string& role = actor.plan.role;
    if (actor.state != ActorState::gone || actor.removing || role == RoleKind::evaluator) continue;
    if (is_elastic(role) && cluster.nodes.at(static_cast<std::size_t>(actor.plan.node)).cpus == 0) {
      actor.state = ActorState::planned;
      actor.waits_for_room = true;  // its node was lost meanwhile
    } else {
      launcher_.spawn(actor, now);
    }
  }
}

void JobController::watch_evaluation(TimePoint now) {
  if (!evaluations_.is_awaited()) return;
  group_.progressed(now);  // the ranks have nothing to do
  const ActorRecord* evaluator = actors_.find(kEvaluatorActor);
  const bool is_gone = !evaluator || evaluator->state == ActorState::gone;
  if (is_gone) return end_without_evaluation("the evaluator is gone", now);
  if (!evaluations_.is_overdue(now)) return;
  end_without_evaluation(
      fmt::format("it did not end within {:.4g} s (eval.timeout_s)", setup_.config.eval.timeout.count()), now);
}

void JobController::end_without_evaluation(const std::string& why, TimePoint now) {
  const EvalReport lost = evaluations_.give_up_last(group_.fence());
  effects_.event(Severity::warn, "evaluation_lost",
                 fmt::format("the evaluation of step {} was not made: {}; the job ends without it, and `troupe eval` "
                             "makes it from the checkpoint",
                             lost.step, why));
  effects_.evaluated(lost);
  checkpoints_.forget_evaluations(0, group_.fence());
  stop_everything(now);
}

}  // namespace troupe::workers
