#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "base/result.h"
#include "comm/channel/arena.h"
#include "comm/collective/collective.h"
#include "comm/control/messages.h"
#include "model/shard/engine.h"
#include "workers/checkpoint/ledger.h"
#include "workers/checkpoint/manifest.h"
#include "workers/learner/divergence.h"
#include "workers/learner/trainer.h"

namespace troupe::workers {

/// One learner rank: forms a group, restores, trains step after step, and hands snapshots over
/// (docs/learner-engine.md#the-rank-around-it). A step is a transaction: weights, moments
/// and ledger advance together after the vote of all ranks, or not at all. What a step is made of is the trainer's.
/// Order within a step: Trainer::step, line of the ledger, Trainer::committed; where a snapshot is due, what did not
/// count, and the snapshot; report, evaluation.
///
/// Owns the one thread that drives the engine. Every public method is thread-safe and returns at once; results come
/// through `report` on the rank's thread. A blocked rank is reached by abort(), never by waiting for it.
///
/// A group is lost by aborted, deadline_exceeded or unavailable, or by a checkpoint that is damaged or gone: the rank
/// reports GroupAbort and waits for a new plan. Any other error, or an exception, is reported as Fatal, which ends the
/// job; so is divergence: ten steps in a row whose loss or gradient is not finite.
class LearnerRank {
 public:
  using Setup = LearnerSetup;
  /// Takes GroupUp, StepReport, EvalReport, SnapshotReady, Finished, GroupAbort, Fatal, Event and what the
  /// trainer reports; called on the rank's thread.
  using Report = std::function<void(const Message&)>;
  using Join = std::function<Result<std::unique_ptr<Collective>>(const GroupPlan&)>;

  /// `join` makes this rank's collective; `trainer` must outlive the rank.
  LearnerRank(Setup setup, Trainer& trainer, Join join, Report report);
  /// Stops and joins the thread.
  ~LearnerRank();
  LearnerRank(const LearnerRank&) = delete;
  LearnerRank& operator=(const LearnerRank&) = delete;

  /// Leaves the present group, if any, and follows the plan. Plans whose fence is not above every fence seen are
  /// ignored.
  void form(const GroupPlan& plan);
  /// Leaves the group of `fence`, if that is the present one; the rank stays and waits for a new plan.
  void abort(std::uint64_t fence, const std::string& why);
  /// Stop after the current step, with a checkpoint; the ranks agree on the step by the vote.
  void finish();
  /// The snapshot of that step is durable, or was given up; its arena may be written again. Ignored where it is of
  /// another fence than the present group's: what that group handed over is still being read.
  void snapshot_settled(const CheckpointCommitted& settled);
  /// Ends the thread at the next opportunity.
  void stop();

 private:
  void run();
  /// Trains by the plan to its end and reports why it ended, unless the rank was told to leave.
  void follow(const GroupPlan& plan);
  /// Join, restore, open the ledger, begin, barrier, steps from plan.resume_step to training.steps, conclude.
  Result<void> train(const GroupPlan& plan);
  /// Returns what the trainer had to say when the checkpoint was made; empty at the start of a job.
  Result<std::string> restore(const GroupPlan& plan);
  /// Errors: those of CheckpointReader; failed_precondition for a model of other units.
  Result<std::string> read_checkpoint(const std::string& directory);
  /// Reports where the checkpoint keeps something that this job does not, or the other way round (rank 0).
  void tell_conversions(const Manifest& manifest) const;
  /// Reports GroupUp with bytes by name: the engine's, "resident" (the trainer's), "snapshot", "process" (RSS).
  /// Errors: aborted.
  Result<void> report_group_up(const GroupPlan& plan);
  /// True: this was the last step of the job or of an early finish.
  Result<bool> train_step(std::int64_t step);
  /// Reports a void step (rank 0). Errors: those of Divergence.
  Result<void> watch_divergence(std::int64_t step, const StepOutcome& outcome);
  Result<void> append_ledger(std::int64_t step, const StepOutcome& outcome);
  /// Without metrics: what of the step did not count.
  StepReport report_of(std::int64_t step, const StepOutcome& outcome) const;
  void report_step(std::int64_t step, const StepOutcome& outcome, double checkpoint_seconds);
  Result<void> evaluate(std::int64_t step);
  /// Makes durable what goes before a snapshot, copies the engine's state into the arena and reports SnapshotReady;
  /// with an error where the disk is too full. One is in flight at a time: the next one waits, and that wait is
  /// time/checkpoint.
  Result<void> snapshot(std::int64_t step);
  /// Syncs the ledger, and writes this rank's part of the frozen base where the run has none yet.
  Result<void> make_durable();
  /// Into the arena, and what goes with it into `ready`. Errors: those of Arena.
  Result<void> copy_state(SnapshotReady& ready);
  /// At most four times checkpoint.timeout_s. Errors: aborted; deadline_exceeded, naming `what`.
  Result<void> wait_snapshot_settled(const char* what);
  std::chrono::milliseconds step_timeout() const;
  bool is_rank_zero() const { return plan_.rank == 0; }

  const Setup setup_;
  Trainer& trainer_;
  const Join join_;
  const Report report_;
  Engine engine_;

  // The rank's thread only.
  GroupPlan plan_;
  // Owned by collective_.
  Collective* group_ = nullptr;
  // The plan's checkpoint is damaged or gone.
  bool is_checkpoint_damaged_ = false;
  // No frozen units, or this rank's part of the base is written, or the checkpoint that the group began at names one.
  bool has_base_ = false;
  std::optional<LedgerWriter> ledger_;
  std::optional<Arena> arena_;
  Divergence divergence_{{}};
  std::chrono::steady_clock::time_point last_commit_{};

  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_, as everything below but finish_ and thread_.
  std::optional<GroupPlan> next_;
  std::unique_ptr<Collective> collective_;
  std::uint64_t fence_ = 0;
  bool aborted_ = false;
  bool told_to_abort_ = false;
  bool stopping_ = false;
  // Step whose snapshot is with the checkpointer.
  std::optional<std::int64_t> unsettled_;
  std::atomic<bool> finish_{false};
  std::thread thread_;
};

}  // namespace troupe::workers
