#include "workers/controller/learner_group.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/seconds.h"

namespace troupe::workers {

namespace {

constexpr int kFruitlessGroups = 5;
constexpr std::chrono::milliseconds kExitNoticeGrace{1500};
constexpr std::chrono::milliseconds kAnswerSlack{2000};
/// Step timeouts without any report, checkpoint, evaluation or busy rollout worker, until the group is taken for dead
/// as a whole.
constexpr int kQuietTimeouts = 5;

}  // namespace

LearnerGroup::LearnerGroup(Options options, ActorTable& actors, ActorLauncher& launcher, StateDb& db,
                           ControllerEffects& effects)
    : options_(std::move(options)), actors_(actors), launcher_(launcher), db_(db), effects_(effects) {}

Result<void> LearnerGroup::form(const std::string& reason, std::int64_t resume_step, const std::string& checkpoint,
                                TimePoint now) {
  if (++fruitless_groups_ > kFruitlessGroups) {
    return Error{Errc::failed_precondition,
                 fmt::format("the learner group formed {} times without committing a step; last reason: {}",
                             kFruitlessGroups, reason)};
  }
  ++epoch_;
  fence_ = options_.term << 32 | epoch_;
  resume_step_ = resume_step;
  regroup_at_.reset();
  complained_.clear();
  joined_.clear();
  finished_.clear();
  has_sent_plans_ = is_dissolved_ = false;
  // One that still owes an answer to the plan before is no younger for it.
  for (const ActorRecord* learner : actors_.of_role("learner")) silent_since_.try_emplace(learner->plan.name, now);
  effects_.record(
      [&db = db_, epoch = EpochRecord{.fence = fence_, .resume_step = resume_step, .reason = reason}] {
        return db.add_epoch(epoch);
      },
      [this, fence = fence_, checkpoint] {
        if (fence == fence_ && !is_dissolved_) send_plans(checkpoint);
      });
  return {};
}

void LearnerGroup::send_plans(const std::string& checkpoint) {
  has_sent_plans_ = true;
  const auto learners = actors_.of_role("learner");
  for (const ActorRecord* learner : learners) {
    effects_.send(learner->plan.name, GroupPlan{.fence = fence_,
                                                .rank = learner->plan.process_rank,
                                                .world = static_cast<std::int64_t>(learners.size()),
                                                .backend = options_.collective,
                                                .store = fmt::format("{}/store-{:016x}", options_.runtime_dir, fence_),
                                                .resume_step = resume_step_,
                                                .checkpoint = checkpoint,
                                                .timeout_ms = options_.step_timeout.count(),
                                                .num_eval = options_.num_eval});
  }
}

bool LearnerGroup::joined(const GroupUp& m) {
  joined_.insert(m.actor);
  silent_since_.erase(m.actor);
  for (const auto& [kind, bytes] : m.bytes) bytes_[kind] = std::max(bytes_[kind], bytes);
  return joined_.size() >= actors_.of_role("learner").size();
}

bool LearnerGroup::finished(const std::string& actor) {
  finished_.insert(actor);
  return finished_.size() >= actors_.of_role("learner").size();
}

void LearnerGroup::left(const std::string& actor, const std::string& reason, TimePoint now) {
  silent_since_.erase(actor);
  complained_.insert(actor);
  if (regroup_at_) return;
  timed_out_ = now - last_progress_ >= options_.step_timeout;
  effects_.event(Severity::info, "group_lost", fmt::format("{} left the group: {}", actor, reason));
  // A dead peer's exit notice usually follows at once and names the cause; without one, the group forms again as it is.
  regroup_at_ = now + kExitNoticeGrace;
}

void LearnerGroup::dissolve() {
  is_dissolved_ = true;
  joined_.clear();
}

void LearnerGroup::lose(const ActorRecord& gone, const std::string& why) {
  dissolve();
  regroup_at_.reset();
  finished_.clear();
  silent_since_.clear();  // the plan they owed an answer to is void
  for (const ActorRecord* other : actors_.of_role("learner")) {
    if (other->plan.name == gone.plan.name || other->state != ActorState::up) continue;
    effects_.send(other->plan.name, GroupAbort{.actor = gone.plan.name, .fence = fence_, .reason = why});
  }
}

void LearnerGroup::finish(const std::string& reason) {
  for (const ActorRecord* learner : actors_.of_role("learner"))
    effects_.send(learner->plan.name, Finish{.reason = reason});
}

void LearnerGroup::committed(TimePoint now) {
  fruitless_groups_ = 0;
  last_progress_ = now;
}

bool LearnerGroup::kill_silent(std::chrono::milliseconds longer_than, TimePoint now) {
  bool killed = false;
  for (ActorRecord* learner : actors_.of_role("learner")) {
    const auto silent = silent_since_.find(learner->plan.name);
    if (learner->state != ActorState::up || silent == silent_since_.end() || now - silent->second <= longer_than)
      continue;
    effects_.event(Severity::warn, "stuck",
                   fmt::format("{} did not join the group of step {}; it is killed", learner->plan.name, resume_step_));
    silent_since_.erase(silent);
    launcher_.stop(*learner, std::chrono::milliseconds(0), "did not join the group");
    killed = true;
  }
  return killed;
}

bool LearnerGroup::kill_awaited() {
  bool killed = false;
  for (ActorRecord* learner : actors_.of_role("learner")) {
    const std::string& name = learner->plan.name;
    if (learner->state != ActorState::up || !joined_.contains(name) || complained_.contains(name)) continue;
    effects_.event(Severity::warn, "stuck", fmt::format("the other ranks waited for {} in vain; it is killed", name));
    launcher_.stop(*learner, std::chrono::milliseconds(0), "the other ranks waited for it");
    killed = true;
  }
  return killed;
}

std::optional<std::string> LearnerGroup::watch(bool trains, TimePoint now) {
  if (!actors_.all_up("learner")) return {};  // one is about to be replaced: its return forms the group
  if (!has_sent_plans_) {                     // the disk is slow, and they have not been asked yet
    for (auto& [name, since] : silent_since_) since = now;
    last_progress_ = now;
    return {};
  }
  const std::chrono::milliseconds step_timeout = options_.step_timeout;
  if (regroup_at_ && now >= *regroup_at_) {
    regroup_at_.reset();
    // Those that waited for a rank gave up after the step timeout and said so. Who said nothing for longer is what
    // they waited for.
    if (kill_silent(step_timeout, now) || (timed_out_ && kill_awaited())) return {};
    return "a collective failed";
  }
  // When all are stuck, or the only one, nobody complains.
  if (kill_silent(std::max(options_.start_timeout, step_timeout + kAnswerSlack), now)) return {};
  const TimePoint last_sign = std::max(last_progress_, last_collecting_);
  if (!trains || regroup_at_ || now - last_sign <= kQuietTimeouts * step_timeout) return {};
  effects_.event(
      Severity::warn, "quiet",
      fmt::format("no rank has reported for {:.0f} s; the group forms again", Seconds(now - last_sign).count()));
  return "no rank reported";
}

}  // namespace troupe::workers
