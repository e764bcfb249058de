#include <fmt/format.h>

#include <algorithm>

#include "tests/simulation/judge.h"
#include "workers/checkpoint/commit.h"

namespace troupe::testing {

namespace {

/// World::setup() and docs/checkpoints.md.
constexpr auto kWriteTimeout = 15s;
constexpr int kAttempts = 3;
/// An exit notice follows a failed collective within this time, or the group forms again.
constexpr auto kExitNotice = 1500ms;

bool is_learner(const std::string& name) { return name.starts_with("learner/"); }

}  // namespace

std::optional<std::uint64_t> GroupJudge::fence_of(const Message& message) {
  return std::visit(
      [](const auto& m) -> std::optional<std::uint64_t> {
        if constexpr (requires { m.fence; })
          return m.fence;
        else
          return std::nullopt;
      },
      message);
}

void GroupJudge::begins(std::int64_t resume_step, std::string checkpoints_folder,
                        std::function<bool(std::uint64_t fence)> is_recorded) {
  folder_ = std::move(checkpoints_folder);
  is_recorded_ = std::move(is_recorded);
  step_ = resume_step;
  written_.reset();
  std::erase_if(voids_, [&](std::int64_t p) { return p >= resume_step * kBatch; });
  drops_group();
  attempts_.clear();
}

void GroupJudge::hears(const Message& message) {
  if (fence() == 0 || fence_of(message).value_or(fence()) != fence()) return;
  if (const auto* up = std::get_if<GroupUp>(&message)) {
    up_.insert(up->actor);
    is_complete_now_ = static_cast<std::int64_t>(up_.size()) == world_;
  } else if (const auto* report = std::get_if<StepReport>(&message)) {
    step_ = std::max(step_, report->step);
    voids_.insert(report->void_positions.begin(), report->void_positions.end());
  } else if (const auto* snapshot = std::get_if<SnapshotReady>(&message)) {
    snapshots_[{snapshot->rank, snapshot->step}] = snapshot->handle;
    const ActorRecord* writer = seen_.service->job().actor("checkpointer/0");
    bool is_whole = writer && writer->state == ActorState::up;
    for (std::int64_t rank = 0; rank < world_; ++rank) is_whole &= snapshots_.contains({rank, snapshot->step});
    if (is_whole) whole_step_ = snapshot->step;
  } else if (const auto* done = std::get_if<CheckpointDone>(&message)) {
    if (!begun_ || begun_->step != done->step) return;
    if (done->error.empty()) {
      written_ = done->step;
      begun_.reset();
    } else if (attempts_[done->step] < kAttempts) {
      begun_->retry_at = seen_.now + std::chrono::seconds(attempts_[done->step]);
    } else {
      is_owed_give_up_ = true;
    }
  } else if (std::holds_alternative<GroupAbort>(message) && seen_.wants_actors() && !regroup_by_) {
    regroup_by_ = seen_.now + kExitNotice;
  }
}

void GroupJudge::sends(const std::string& to, const Message& message) {
  looks_for_group();
  if (const auto* plan = std::get_if<GroupPlan>(&message)) {
    told(to, *plan);
  } else if (const auto* begin = std::get_if<CheckpointBegin>(&message)) {
    begins_write(*begin);
  } else if (const auto* settled = std::get_if<CheckpointCommitted>(&message)) {
    settles_write(to, *settled);
  } else if (const auto* abort = std::get_if<GroupAbort>(&message)) {
    if (abort->fence != fence()) breach_(fmt::format("{} is told to leave the group of {:x}", to, abort->fence));
    owed_abort_.erase(to);
  } else if (const auto* stop = std::get_if<Stop>(&message)) {
    if (is_learner(stop->actor)) regroup_by_.reset();
    if (stop->actor == "checkpointer/0" && begun_) begun_->at = seen_.now;
  }
}

void GroupJudge::looks_for_group() {
  if (fence() == fence_ || fence() == 0) return;
  if (fence() <= fence_ || fence() >> 32 != seen_.term)
    breach_(fmt::format("the group of {:x} follows that of {:x} in term {}", fence(), fence_, seen_.term));
  drops_group();
  written_.reset();
  told_.clear();
  fence_ = fence();
  step_ = seen_.service->job().checkpoints().committed_step();
  std::erase_if(voids_, [&](std::int64_t p) { return p >= step_ * kBatch; });
}

void GroupJudge::told(const std::string& to, const GroupPlan& plan) {
  const JobController& job = seen_.service->job();
  const ActorRecord* row = job.actor(name_without_life(to));
  if (!row || row->instance() != to || row->state != ActorState::up)
    breach_(fmt::format("{} is told to form a group and is not up", to));
  if (plan.fence != fence_) breach_(fmt::format("{} is told of {:x} while {:x} stands", to, plan.fence, fence_));
  if (!is_recorded_(plan.fence)) breach_(fmt::format("{} is told of {:x}, which is not in state.db", to, plan.fence));
  if (!is_telling_ && !told_.empty()) breach_(fmt::format("{} is told of {:x} later than others", to, plan.fence));
  is_telling_ = true;
  if (!told_.insert(to).second) breach_(fmt::format("{} is told twice of {:x}", to, plan.fence));
  if (plan.world != world_ || to.find(fmt::format("/{}#", plan.rank)) == std::string::npos)
    breach_(fmt::format("{} is to be rank {} of {}", to, plan.rank, plan.world));
  if (plan.resume_step != job.checkpoints().committed_step() ||
      plan.checkpoint != job.checkpoints().committed_directory())
    breach_(fmt::format("{:x} begins at step {} of '{}', and step {} is committed", plan.fence, plan.resume_step,
                        plan.checkpoint, job.checkpoints().committed_step()));
}

void GroupJudge::drops_group() {
  up_.clear();
  snapshots_.clear();
  whole_step_.reset();
  begun_.reset();
  regroup_by_.reset();
  is_owed_give_up_ = false;
  owed_abort_.clear();
}

void GroupJudge::loses(const std::string& learner) {
  drops_group();
  for (const auto& [name, row] : seen_.service->job().actors().rows()) {
    if (is_learner(name) && name != learner && row.state == ActorState::up) owed_abort_.insert(row.instance());
  }
}

void GroupJudge::begins_write(const CheckpointBegin& begin) {
  const std::string what = fmt::format("the checkpoint of step {} under {:x}", begin.step, begin.fence);
  if (begin.fence != fence_) breach_(fmt::format("{} begins while {:x} stands", what, fence_));
  if (begin.directory != folder_ + "/" + checkpoint_tmp_name(begin.step, begin.fence))
    breach_(fmt::format("{} is to be written into {}", what, begin.directory));
  for (std::int64_t rank = 0; rank < world_; ++rank) {
    const auto given = snapshots_.find({rank, begin.step});
    const auto place = static_cast<std::size_t>(rank);
    if (given == snapshots_.end() || place >= begin.snapshots.size() || begin.snapshots[place] != given->second)
      breach_(fmt::format("{} is made of '{}'; rank {} gave '{}' for it", what,
                          place < begin.snapshots.size() ? begin.snapshots[place] : "", rank,
                          given == snapshots_.end() ? "nothing" : given->second));
  }
  const auto below = [&](std::int64_t p) { return p < begin.step * kBatch; };
  const auto given = std::count_if(begin.void_positions.begin(), begin.void_positions.end(), below);
  const auto owed = std::count_if(voids_.begin(), voids_.end(), below);
  if (given != owed) breach_(fmt::format("{} has {} void positions of {}", what, given, owed));
  if (!attempts_.contains(begin.step)) attempts_.clear();
  ++attempts_[begin.step];
  begun_ = {.step = begin.step, .at = seen_.now};
  whole_step_.reset();
}

void GroupJudge::settles_write(const std::string& to, const CheckpointCommitted& settled) {
  const std::string what = fmt::format("{} is told that step {} of {:x} is {}", to, settled.step, settled.fence,
                                       settled.committed ? "committed" : "given up");
  if (settled.fence != fence_) breach_(fmt::format("{}, and {:x} stands", what, fence_));
  if (settled.committed && written_ != settled.step) breach_(what + ", and the checkpointer has not written it");
  if (settled.committed && seen_.service->job().checkpoints().committed_step() != settled.step)
    breach_(what + ", and the controller's newest is another");
  if (!settled.committed && attempts_[settled.step] < kAttempts)
    breach_(fmt::format("{} after {} attempts", what, attempts_[settled.step]));
  if (!settled.committed) given_up_ = last_given_up_ = settled.step;
  std::erase_if(snapshots_, [&](const auto& entry) { return entry.first.second <= settled.step; });
  begun_.reset();
  whole_step_.reset();
  is_owed_give_up_ = false;
}

void GroupJudge::settled(bool has_ticked) {
  looks_for_group();
  const JobController& job = seen_.service->job();
  const bool trains = job.state() == JobState::running || job.state() == JobState::draining;
  const auto members = static_cast<std::int64_t>(up_.size());
  if (trains && members != world_)
    breach_(fmt::format("the job is {} while {} of {} ranks are in the group of {:x}", enum_name(job.state()), members,
                        world_, fence_));
  if (is_complete_now_ && seen_.wants_actors() && !trains)
    breach_(fmt::format("all ranks are in the group of {:x} and the job is {}", fence_, enum_name(job.state())));
  is_complete_now_ = false;
  if (std::exchange(is_telling_, false) && static_cast<std::int64_t>(told_.size()) != world_)
    breach_(fmt::format("{} of {} ranks were told of {:x}", told_.size(), world_, fence_));
  if (job.step() != step_) breach_(fmt::format("the job is at step {} and should be at {}", job.step(), step_));
  if (fence() != 0 && job.void_samples() != static_cast<std::int64_t>(voids_.size()))
    breach_(fmt::format("{} samples are void and should be {}", job.void_samples(), voids_.size()));
  if (std::exchange(given_up_, std::nullopt)) attempts_.clear();
  if (!seen_.wants_actors()) return;
  if (whole_step_)
    breach_(fmt::format("all ranks gave step {}, and the checkpointer is not told to write it", *whole_step_));
  if (is_owed_give_up_) breach_("a checkpoint failed for the last time and is not given up");
  for (const std::string& rank : owed_abort_) breach_(fmt::format("{} is not told that its group is broken", rank));
  owed_abort_.clear();
  whole_step_.reset();
  is_owed_give_up_ = false;
  if (has_ticked) judge_deadlines();
}

void GroupJudge::judge_deadlines() {
  const auto is_up = [&](const auto& entry) {
    return !is_learner(entry.first) || entry.second.state == ActorState::up;
  };
  const auto& rows = seen_.service->job().actors().rows();
  // A group begins at the newest checkpoint: it waits for a commit.
  if (regroup_by_ && seen_.service->job().checkpoints().newest_is_open()) regroup_by_ = seen_.now + 1s;
  if (regroup_by_ && seen_.now >= *regroup_by_ && std::all_of(rows.begin(), rows.end(), is_up)) {
    breach_("a collective failed, no rank has ended, and no group forms");
    regroup_by_.reset();
  }
  if (!begun_) return;
  if (begun_->retry_at ? seen_.now >= *begun_->retry_at : seen_.now - begun_->at > kWriteTimeout) {
    breach_(fmt::format("the checkpoint of step {} is {}", begun_->step,
                        begun_->retry_at ? "not tried again" : "not given up on time"));
    begun_.reset();
  }
}

}  // namespace troupe::testing
