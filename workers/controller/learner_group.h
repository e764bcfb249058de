#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "base/result.h"
#include "comm/control/messages.h"
#include "workers/controller/actor_launcher.h"
#include "workers/controller/state_db.h"

namespace troupe::workers {

/// The learners as one group: forms it in ever new membership epochs, knows who has joined it and who owes an answer,
/// and says when it has to form again. Not thread-safe.
class LearnerGroup {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  struct Options {
    /// The upper half of every fence.
    std::uint64_t term = 1;
    /// Plan::collective.
    std::string collective;
    /// Folder of the collective's stores, one file a fence.
    std::string runtime_dir;
    /// Longest wait within a collective, and until an actor comes up.
    std::chrono::milliseconds step_timeout{120'000}, start_timeout{120'000};
    /// Held-out samples that learners fetch at the start of each group.
    std::int64_t num_eval = 0;
  };

  /// `actors`, `launcher`, `db` and `effects` are not owned and outlive it.
  LearnerGroup(Options options, ActorTable& actors, ActorLauncher& launcher, StateDb& db, ControllerEffects& effects);

  /// term << 32 | epoch of the newest group; 0: none has formed.
  std::uint64_t fence() const { return fence_; }
  /// It is this controller's first.
  bool is_first() const { return epoch_ == 1; }

  /// A new membership epoch that begins at a checkpoint: fence, entry in state.db and, once that is written, GroupPlan
  /// to every learner. Errors: failed_precondition (five groups in a row committed no step).
  Result<void> form(const std::string& reason, std::int64_t resume_step, const std::string& checkpoint, TimePoint now);
  /// A learner came up again. Its restart budget bounds the groups that this costs.
  void learner_came_up() { fruitless_groups_ = 0; }
  /// A damaged checkpoint is set aside. The number of checkpoints bounds the groups that this costs.
  void went_back() { fruitless_groups_ = 0; }
  /// A rank is in the group. True: it was the last.
  bool joined(const GroupUp& m);
  /// A rank has trained to the end. True: it was the last.
  bool finished(const std::string& actor);
  /// A rank's collective failed. The group forms again unless a rank's exit notice follows soon. Where it had lasted
  /// for the step timeout, ranks that do not say so, too, are what the others waited for: they are killed.
  void left(const std::string& actor, const std::string& reason, TimePoint now);
  /// The actor has ended, or has answered the plan in another way than by GroupUp.
  void owes_nothing(const std::string& actor) { silent_since_.erase(actor); }
  /// The newest group is over: no rank is asked to form it any more, and none joins it.
  void dissolve();
  /// A rank is gone: the others are told GroupAbort and wait for the next group.
  void lose(const ActorRecord& gone, const std::string& why);
  /// Tells every learner to finish its step.
  void finish(const std::string& reason);
  /// A sign of work: a step, a checkpoint, an evaluation.
  void progressed(TimePoint now) { last_progress_ = now; }
  /// A rollout worker makes trajectories: ranks that wait for them report nothing meanwhile, and are not dead. Ranks
  /// that hang go unnoticed, too, until the rounds granted ahead are made and the quiet time of watch() has passed.
  void collecting(TimePoint now) { last_collecting_ = now; }
  /// A step was committed.
  void committed(TimePoint now);

  /// Kills ranks that neither work nor die. Returns why the group has to form again; nothing: it stands. `trains`:
  /// reports are due, so that silence of all counts.
  std::optional<std::string> watch(bool trains, TimePoint now);

  /// Memory accounts by kind, of the largest rank.
  const std::map<std::string, std::int64_t>& bytes() const { return bytes_; }

 private:
  void send_plans(const std::string& checkpoint);
  /// Kills ranks that owed an answer to their GroupPlan for longer. True: at least one.
  bool kill_silent(std::chrono::milliseconds longer_than, TimePoint now);
  /// Kills ranks of the group that did not complain. True: at least one.
  bool kill_awaited();

  const Options options_;
  ActorTable& actors_;
  ActorLauncher& launcher_;
  StateDb& db_;
  ControllerEffects& effects_;
  std::uint64_t epoch_ = 0;
  std::uint64_t fence_ = 0;
  bool is_dissolved_ = false;
  std::int64_t resume_step_ = 0;
  // The newest group is in state.db.
  bool has_sent_plans_ = true;
  // Learners that answered the newest GroupPlan with GroupUp, and those that said Finished.
  std::set<std::string> joined_, finished_;
  // Learners that owe an answer to their group's plan, and since when.
  std::map<std::string, TimePoint> silent_since_;
  // A collective failed and nobody has died yet; who said so, and whether it had lasted for the step timeout.
  std::optional<TimePoint> regroup_at_;
  std::set<std::string> complained_;
  bool timed_out_ = false;
  // Formed without a committed step in between.
  int fruitless_groups_ = 0;
  TimePoint last_progress_{};
  TimePoint last_collecting_{};
  std::map<std::string, std::int64_t> bytes_;
};

}  // namespace troupe::workers
