// What ends the wait for learner ranks that neither work nor die: stopped, or stuck where no deadline of their own
// reaches.
#include <fmt/format.h>

#include "workers/controller/job_controller.h"

namespace troupe::workers {

namespace {

constexpr std::chrono::milliseconds kAnswerSlack{2000};
/// Step timeouts without any report, checkpoint or evaluation, until the group is taken for dead as a whole.
constexpr int kQuietTimeouts = 5;

}  // namespace

bool JobController::kill_silent(std::chrono::milliseconds longer_than, TimePoint now) {
  bool killed = false;
  for (ActorRecord* learner : actors_.of_role("learner")) {
    const auto silent = silent_since_.find(learner->plan.name);
    if (learner->state != ActorState::up || silent == silent_since_.end() || now - silent->second <= longer_than)
      continue;
    effects_.event(Severity::warn, "stuck",
                   fmt::format("{} did not join the group of step {}; it is killed", learner->plan.name, step_));
    silent_since_.erase(silent);
    learner->state = ActorState::stopping;
    stop(*learner, std::chrono::milliseconds(0), "did not join the group");
    killed = true;
  }
  return killed;
}

void JobController::watch_group(TimePoint now) {
  if (!actors_.all_up("learner")) return;  // one is about to be replaced: its return forms the group
  const std::chrono::milliseconds step_timeout = to_milliseconds(setup_.config.training.step_timeout_s);
  if (regroup_at_ && now >= *regroup_at_) {
    regroup_at_.reset();
    // Those that waited for a rank gave up after the step timeout and said so. Who said nothing for longer is what
    // they waited for.
    if (!kill_silent(step_timeout, now)) form_group("a collective failed", now);
    return;
  }
  // When all are stuck, or the only one, nobody complains.
  if (kill_silent(std::max(to_milliseconds(setup_.config.cluster.start_timeout_s), step_timeout + kAnswerSlack), now))
    return;
  const bool at_work = state_ == JobState::running || state_ == JobState::draining;
  if (at_work && !regroup_at_ && !checkpoints_.is_writing() && now - last_progress_ > kQuietTimeouts * step_timeout) {
    effects_.event(Severity::warn, "quiet",
                   fmt::format("no rank has reported for {:.0f} s; the group forms again",
                               std::chrono::duration<double>(now - last_progress_).count()));
    form_group("no rank reported", now);
  }
}

}  // namespace troupe::workers
