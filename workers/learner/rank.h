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
#include "configs/job_config.h"
#include "model/shard/engine.h"
#include "workers/checkpoint/ledger.h"
#include "workers/learner/trainer.h"

namespace troupe {

/// One learner rank: forms a group, restores, trains step after step, and hands snapshots over (learner.md 4.13).
/// A step is a transaction: weights, moments and ledger advance together after the vote of all ranks, or not at all. What a
/// step is made of is the trainer's.
///
/// Owns the one thread that drives the engine. Every public method is thread-safe and returns at once; results come through
/// `report` on the rank's thread. A blocked rank is reached by abort(), never by waiting for it.
class LearnerRank {
 public:
  struct Setup {
    JobConfig config;
    std::string actor;             ///< "learner/0"
    std::int64_t incarnation = 0;  ///< which start of that actor this is; names it at fault points
    std::string run_dir;           ///< ledger/ is written below it
  };
  using Report = std::function<void(const Message&)>;
  using Join = std::function<Result<std::unique_ptr<Collective>>(const GroupPlan&)>;

  /// `join` makes this rank's collective; `trainer` must outlive the rank.
  LearnerRank(Setup setup, Trainer& trainer, Join join, Report report);
  /// Stops and joins the thread.
  ~LearnerRank();
  LearnerRank(const LearnerRank&) = delete;
  LearnerRank& operator=(const LearnerRank&) = delete;

  /// Leaves the present group, if any, and follows the plan.
  void form(const GroupPlan& plan);
  /// Leaves the group of `fence`; the rank stays and waits for a new plan.
  void abort(std::uint64_t fence, const std::string& why);
  /// Stop after the current step, with a checkpoint.
  void finish();
  /// The snapshot of `step` is durable, or was given up.
  void snapshot_settled(std::int64_t step, bool committed);
  /// Ends the thread at the next opportunity.
  void stop();

 private:
  void run();
  void follow(const GroupPlan& plan);
  Result<void> train(const GroupPlan& plan);
  /// Returns what the trainer had to say when the checkpoint was made; empty at the start of a job.
  Result<std::string> restore(const GroupPlan& plan);
  Result<void> report_group_up(const GroupPlan& plan);
  Result<bool> train_step(std::int64_t step);
  Result<void> count_void(std::int64_t step, bool applied);
  Result<void> append_ledger(std::int64_t step, const StepOutcome& outcome);
  void report_step(std::int64_t step, const StepOutcome& outcome, double checkpoint_seconds);
  Result<void> evaluate(std::int64_t step);
  Result<void> snapshot(std::int64_t step);
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
  Collective* group_ = nullptr;  // owned by collective_
  std::optional<LedgerWriter> ledger_;
  std::optional<Arena> arena_;
  std::int64_t consecutive_void_ = 0;
  std::chrono::steady_clock::time_point last_commit_{};

  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<GroupPlan> next_;
  std::unique_ptr<Collective> collective_;
  std::uint64_t fence_ = 0;
  bool aborted_ = false;
  bool told_to_abort_ = false;
  bool stopping_ = false;
  std::optional<std::int64_t> unsettled_;  // step whose snapshot is with the checkpointer
  std::atomic<bool> finish_{false};
  std::thread thread_;
};

}  // namespace troupe
