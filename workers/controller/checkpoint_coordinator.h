#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "comm/control/messages.h"
#include "workers/checkpoint/run_directory.h"
#include "workers/controller/effects.h"
#include "workers/controller/state_db.h"

namespace troupe::workers {

/// Collects the snapshots of all ranks, has the checkpointer write them, and commits what it wrote: fence check, the
/// intent in SQLite, rename, `latest`, SQLite, pruning (docs/checkpoints.md#writing-and-committing). One checkpoint is
/// in flight at a time; a snapshot of a newer step replaces it. Called from the controller's actor only; files change
/// in the background (ControllerEffects::in_background). Takes SnapshotReady of every learner rank and CheckpointDone
/// of checkpointer/0; sends CheckpointBegin to checkpointer/0 and CheckpointCommitted to every rank that had given a
/// snapshot. A write that fails or hangs is tried 3 times, also when the ranks go back and come to its step again; then
/// it is given up, the ranks are told so, and training goes on with the older checkpoint.
class CheckpointCoordinator {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  struct Options {
    /// Learner ranks: so many snapshots make a checkpoint.
    std::int64_t world = 1;
    /// Newest checkpoints that are not pruned (checkpoint.keep).
    std::int64_t keep = 3;
    /// The metric by which the best is kept too, and whether the least is the best; empty: none (checkpoint.keep_best).
    std::string best_metric = {};
    bool least_is_best = false;
    /// Whether an evaluator is to play that step; empty: there is none, and evaluations end before the commit.
    std::function<bool(std::int64_t step)> is_evaluated_beside = {};
    /// Longest time of one write, after which the checkpointer is replaced.
    std::chrono::milliseconds timeout{600'000};
  };

  /// `db` and `effects` are not owned and outlive it.
  CheckpointCoordinator(Options options, RunDirectory run, StateDb& db, ControllerEffects& effects);

  /// The newest committed checkpoint: found on disk at start, advanced by commits.
  std::int64_t committed_step() const { return committed_step_; }
  /// The checkpointer has been asked and has not answered; tick() watches its deadline.
  bool is_writing() const { return pending_ && pending_->sent && !pending_->retry_at; }
  /// What was written is being committed, or a damaged checkpoint set aside: which one is the newest is open until that
  /// ends. A group that forms waits for it.
  bool newest_is_open() const { return committing_ || going_back_since_; }
  /// Why the job cannot go on: newest_is_open() for longer than Options::timeout, or there is no way back from a
  /// damaged checkpoint.
  std::optional<std::string> failure(TimePoint now) const;
  /// Folder of the newest committed checkpoint; empty before the first.
  const std::string& committed_directory() const { return committed_directory_; }
  /// What was found on disk at the start of the run; 0 and an empty folder: the initial state.
  void resume_from(std::int64_t step, const std::string& directory);
  /// Makes state.db say what lies on disk, once, after resume_from(): a commit that a crash interrupted is finished
  /// where the folder has its name, and forgotten where it has not; the catalogue loses what is gone and gains what is
  /// there; the committed step is that of resume_from(); later checkpoints, which could not be read, are set aside.
  /// Blocks. Errors: those of StateDb and commit_checkpoint.
  Result<void> settle();

  /// A rank's snapshot lies ready in its memory. Snapshots of another fence are ignored. The last rank's starts the
  /// write, if the checkpointer is up; where a rank has none to give, the checkpoint is given up. `void_positions`:
  /// samples that did not count so far, `bad_positions`: those of them that could not be made; both go into the
  /// checkpoint's ledger.json.
  void on_snapshot(const SnapshotReady& snapshot, std::uint64_t fence, bool checkpointer_up,
                   const std::set<std::int64_t>& void_positions, const std::set<std::int64_t>& bad_positions,
                   TimePoint now);
  /// The checkpointer (re)started: what it owed is asked again.
  void on_checkpointer_up(TimePoint now);
  /// The checkpointer has written, or failed to. What it wrote is committed in the background; an answer of another
  /// step or fence is not, and its folder is removed.
  void on_done(const CheckpointDone& done, std::uint64_t fence, TimePoint now);
  /// An evaluation beside training has begun: with best_metric the checkpoint of that step is not pruned before the
  /// evaluation has ended or another one has begun. Earlier steps will not be evaluated any more. Of later ones that
  /// are to be evaluated the newest two stay, as their weights may be on the way to the evaluator.
  void on_evaluation_begun(std::int64_t step);
  /// An evaluation of `step` ended. Its checkpoint becomes the best, now or when it is committed, if no better one is
  /// there; ignored without best_metric.
  void on_evaluation(const EvalReport& report);
  /// Steps behind `last` will be trained again, or are not evaluated at all: nothing waits for their evaluations.
  void forget_evaluations(std::int64_t last, std::uint64_t fence);
  /// The group is forming again: what is in flight will not be committed. A commit that is under way ends as it will.
  void abandon();
  /// A rank of the group of `fence` cannot read the newest checkpoint: it is set aside as
  /// step_NNNNNN.damaged-<fence>, and the one before it becomes the newest. Where there is none before the one that
  /// this start of the run began at, and this process finds no sound one either, that is the initial state. In the
  /// background.
  void go_back(std::uint64_t fence, const std::string& why, TimePoint now);
  /// Retries a failed write when its pause is over. Returns true if the checkpointer overran its deadline and must be
  /// killed; its last attempt is given up then.
  bool tick(TimePoint now);

 private:
  /// The checkpoint in flight; `sent` from its first CheckpointBegin on.
  struct Pending {
    // Without `snapshots` and `directory`, which begin() adds.
    CheckpointBegin request;
    // By rank.
    std::map<std::int64_t, std::string> handles = {};
    // Why a rank gave none.
    std::string refused = {};
    std::optional<TimePoint> retry_at = {};
    // Of the write, then of the commit.
    TimePoint begun{};
    bool sent = false, is_abandoned = false;
  };
  /// Where the checkpointer writes: the only folder of a checkpoint that is ever renamed or removed by its messages.
  std::string folder_of(std::int64_t step, std::uint64_t fence) const;
  /// Asks the checkpointer to write: into a folder that carries step and fence in its name.
  void begin(TimePoint now);
  /// Begins intent, rename, and state.db.
  void commit(const CheckpointDone& done);
  /// It has succeeded: tells the ranks, prunes.
  void committed();
  bool keeps_best() const { return !options_.best_metric.empty(); }
  /// The evaluation of a checkpoint that is there, or will be, is to be waited for.
  void expect_evaluation(std::int64_t step);
  /// What it is compared by; nothing: it is not compared.
  std::optional<double> value_of(const EvalReport& report) const;
  /// Removes checkpoints but the newest, the best, and those whose evaluation is pending.
  void prune(std::uint64_t fence);
  /// Compares a committed checkpoint with the best there is.
  void judge(const BestRecord& evaluated);
  /// A write or a commit has failed: it is tried again, or given up.
  void failed(Pending attempt, const std::string& why);
  /// Tells ranks that nothing was committed; the next snapshot tries anew.
  void give_up(const Pending& attempt, const std::string& why);
  void tell_learners(const Pending& attempt, bool committed);
  /// The catalogue as the folder has it.
  Result<void> settle_catalogue();
  /// A commit that began and failed will not be tried again: its folder goes, and `latest` names the one before, or a
  /// later start would find a checkpoint that training went on without.
  void take_back();

  const Options options_;
  const RunDirectory run_;
  StateDb& db_;
  ControllerEffects& effects_;
  std::optional<Pending> pending_, committing_;
  // Times that the checkpoint of this step was begun, under any fence.
  std::int64_t attempted_step_ = -1;
  int attempts_ = 0;
  // Of steps whose checkpoints are not committed.
  std::map<std::int64_t, double> evaluations_;
  // Step under evaluation; newest step whose evaluation began; committed steps whose evaluation may begin.
  std::optional<std::int64_t> evaluating_;
  std::int64_t newest_begun_ = 0;
  std::set<std::int64_t> expected_;
  // Begun in state.db and not finished.
  std::optional<CheckpointRecord> begun_commit_;
  std::optional<TimePoint> going_back_since_;
  // Why there was no way back.
  std::string lost_;
  // Of the newest on_done() or tick().
  TimePoint now_{};
  std::int64_t committed_step_ = 0;
  // The checkpoint that this start of the run began at, or went back to before it committed one.
  std::int64_t began_at_ = 0;
  std::string committed_directory_;
};

}  // namespace troupe::workers
