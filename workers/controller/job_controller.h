#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "comm/control/messages.h"
#include "configs/job_config.h"
#include "configs/role_kind.h"
#include "placement/plan.h"
#include "placement/roles.h"
#include "workers/checkpoint/run_directory.h"
#include "workers/controller/actor_launcher.h"
#include "workers/controller/actor_pools.h"
#include "workers/controller/actor_restarts.h"
#include "workers/controller/actor_table.h"
#include "workers/controller/checkpoint_coordinator.h"
#include "workers/controller/effects.h"
#include "workers/controller/evaluation_watch.h"
#include "workers/controller/job_state.h"
#include "workers/controller/learner_group.h"
#include "workers/controller/state_db.h"

namespace troupe::workers {

/// One job's state machine. It owns the learner group (LearnerGroup), its checkpoints (CheckpointCoordinator), the
/// pools with their nodes (ActorPools) and what follows when an actor ends (ActorRestarts), and decides what one means
/// for the others. Purely event-driven: no sockets, no threads, no clock of its own. Every method is called from one
/// actor.
/// - Takes ActorUp, ActorExited, GroupUp, GroupAbort, StepReport, EvalBegun, EvalReport, Event, ProducerTimes, BadClip,
///   StuckProducer, Quarantined, Fatal, SnapshotReady, CheckpointDone and Finished. Other messages are ignored, and
///   so is what an older incarnation or fence says.
/// - Sends Spawn and Stop to nodes; Peers to producers (addresses to dial) and consumers (producers that are gone);
///   GroupPlan, GroupAbort and Finish to learners; what CheckpointCoordinator sends.
/// - A group begins at the newest committed checkpoint. When a learner dies, all ranks go back to it. Five groups in a
///   row without a committed step fail the job.
/// - The evaluation of the last step is awaited for eval.timeout_s, with simulators and rollout workers stopped. The
///   job ends without that evaluation at the deadline, when the evaluator is given up, or at a failure of an actor that
///   the evaluation needs. Failures of other actors are ignored meanwhile.
/// - The job fails when RestartPolicy gives another actor up, when bad samples exceed data.max_bad_fraction, when a
///   rank reports Fatal, when state.db cannot be written, or when a node with a learner or the checkpointer is lost.
class JobController {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  struct Setup {
    JobConfig config;
    Plan plan;
    RunDirectory run;
    /// Folder of the collective's stores, one file a fence (docs/run-directory.md#runtime-directory).
    std::string runtime_dir;
    /// Of this controller: StateDb::next_term(), the upper half of every fence.
    std::uint64_t term = 1;
    /// Steps that the checkpoint to start from has committed.
    std::int64_t resume_step = 0;
    /// Folder of that checkpoint; empty: initial state.
    std::string resume_checkpoint;
    /// Positions below it that did not count, and those of them whose sample could not be made.
    std::vector<std::int64_t> resume_voids = {}, resume_bad = {};
    /// Held-out samples that learners fetch at the start of each group.
    std::int64_t num_eval = 0;
  };

  /// `db` and `effects` are not owned and outlive it. Sends nothing before start().
  JobController(Setup setup, StateDb& db, ControllerEffects& effects);
  JobController(const JobController&) = delete;
  JobController& operator=(const JobController&) = delete;

  /// Spawns every planned actor. Once.
  void start(TimePoint now);
  /// Any message of an actor or node; `from` is the name of its sender, whose newest start it is (ControllerService
  /// checks that).
  void handle(const std::string& from, const Message& message, TimePoint now);
  /// Deadlines, restarts, retries. Call about every 100 ms.
  void tick(TimePoint now);
  /// Stop with a checkpoint: learners finish their step and write one. A second call, or one before the group is up,
  /// stops at once; the newest checkpoint on disk stays.
  void interrupt(const Interrupt& interrupt, TimePoint now);
  /// Node `rank` joined (again) and hosts `running` ("decoder/0#1"): actors may be placed there. `is_new_process`: what
  /// an earlier one was told to start has ended with it.
  void node_joined(const NodeSnapshot& node, std::int64_t rank, const std::vector<std::string>& running,
                   bool is_new_process, TimePoint now);
  /// Whether node `rank` has been silent for long enough that nothing new is placed there.
  void node_suspected(std::int64_t rank, bool is_suspect);
  /// Node `rank` is lost: its actors count as gone. Those of elastic roles are spawned where there is room; any other
  /// fails the job.
  void node_lost(std::int64_t rank, TimePoint now);
  /// Only the evaluation of the last step is awaited, and an actor of this role does nothing for it.
  bool is_spare(std::string_view role) const {
    return evaluations_.is_awaited() && role != RoleKind::evaluator &&
           (role != RoleKind::learner || !evaluations_.needs_weights());
  }
  /// The actor's record; null: there is none of this name.
  const ActorRecord* actor(const std::string& name) const { return actors_.find(name); }

  /// `troupe scale`: spawns or stops actors of one elastic pool and records a new revision of the plan. The text says
  /// what changes; code 0, 3 (infeasible, or the job is ending: the text says why).
  Reply scale(const Scale& request, TimePoint now);
  /// JSON for `troupe status`: job, run, state, step, steps, fence, committed_step, restarts, void_samples, actors[],
  /// pools, nodes[], metrics of the newest step, bytes of the learners by kind (largest rank).
  std::string status_json(TimePoint now) const;

  JobState state() const { return state_; }
  /// Set when every actor has ended: 0 done, 4 failed, 75 or 130 stopped (JobState).
  std::optional<int> exit_code() const { return workers::exit_code(state_); }
  /// Why the job failed, for people; empty: it did not.
  const std::string& failure() const { return failure_; }
  /// The newest committed step; goes back when a group forms at an older checkpoint.
  std::int64_t step() const { return step_; }
  /// Of the newest learner group; 0: none has formed.
  std::uint64_t fence() const { return group_.fence(); }
  std::int64_t restarts() const { return restarts_.count(); }
  /// Positions that were trained as bad samples and count for nothing.
  std::int64_t void_samples() const { return static_cast<std::int64_t>(void_positions_.size()); }
  const CheckpointCoordinator& checkpoints() const { return checkpoints_; }
  const Plan& plan() const { return pools_.plan(); }
  const ActorTable& actors() const { return actors_; }

 private:
  void on(const std::string& from, const ActorUp& m, TimePoint now);
  void on(const std::string& from, const ActorExited& m, TimePoint now);
  /// An actor that survives SIGKILL. A pool that makes samples goes on without it while it has others; the job fails
  /// where it was the last one, or of another role: its devices and slots are not free.
  void on_unkillable(const ActorExited& m, TimePoint now);
  void on(const std::string& from, const GroupUp& m, TimePoint now);
  void on(const std::string& from, const GroupAbort& m, TimePoint now);
  void on(const std::string& from, const StepReport& m, TimePoint now);
  void on(const std::string& from, const EvalBegun& m, TimePoint now);
  void on(const std::string& from, const EvalReport& m, TimePoint now);
  void on(const std::string& from, const Event& m, TimePoint now);
  void on(const std::string& from, const ProducerTimes& m, TimePoint now);
  void on(const std::string& from, const BadClip& m, TimePoint now);
  void on(const std::string& from, const StuckProducer& m, TimePoint now);
  void on(const std::string& from, const Quarantined& m, TimePoint now);
  void on(const std::string& from, const Fatal& m, TimePoint now);
  void on(const std::string& from, const SnapshotReady& m, TimePoint now);
  void on(const std::string& from, const CheckpointDone& m, TimePoint now);
  void on(const std::string& from, const Finished& m, TimePoint now);
  /// An evaluation beside training has ended.
  void evaluated_beside(const EvalReport& m, TimePoint now);
  /// The job has an evaluator, and the last step has not been evaluated.
  bool lacks_evaluation() const { return actors_.find(kEvaluatorActor) != nullptr && evaluations_.owes_last(); }
  /// The last checkpoint is on disk: stops simulators and rollout workers.
  void await_evaluation(TimePoint now);
  /// Ends the job when the evaluation of the last step does not come.
  void watch_evaluation(TimePoint now);
  /// Its evaluation is not awaited any more, and counts as lost; the job is complete all the same.
  void end_without_evaluation(const std::string& why, TimePoint now);
  /// The last step is trained again: starts what await_evaluation() stopped.
  void start_stopped(TimePoint now);
  /// A message that is not the controller's.
  template <class Other>
  void on(const std::string& from, const Other& m, TimePoint now);

  /// A new group at the newest committed checkpoint; the checkpoint in flight is dropped.
  void form_group(const std::string& reason, TimePoint now);
  /// Writes the state to state.db too; a failure there is an event only.
  void set_state(JobState state, TimePoint now);
  /// Keeps the first reason and stops everything; nothing once the job is stopping. A job of which only the evaluation
  /// is awaited ends without it.
  void fail(const std::string& why, TimePoint now);
  /// Stop to producers, then learners, then the checkpointer: 5 s of grace each, after 15 s all are killed.
  void stop_everything(TimePoint now);
  /// Kills those that did not end in time; all have ended: the job's last state.
  void tick_stopping(TimePoint now);
  /// Counts those that outlived every SIGKILL as gone; the job has failed.
  void give_up_stopping();
  bool wants_actors() const { return state_ != JobState::stopping && !exit_code() && !has_stopped_sources_; }
  /// Fails the job when samples that could not be made exceed data.max_bad_fraction of training.steps * global batch.
  void check_bad_samples(TimePoint now);

  const Setup setup_;
  StateDb& db_;
  ControllerEffects& effects_;
  ActorTable actors_;
  ActorLauncher launcher_;
  ActorRestarts restarts_;
  ActorPools pools_;
  LearnerGroup group_;
  CheckpointCoordinator checkpoints_;
  EvaluationWatch evaluations_;
  bool has_stopped_sources_ = false;
  JobState state_ = JobState::starting;
  TimePoint state_since_{};
  std::int64_t step_ = 0;
  // All of the newest group's history; those whose sample could not be made.
  std::set<std::int64_t> void_positions_, bad_positions_;
  std::map<std::string, double> last_metrics_;
  // The one that counts; nothing: the job was not asked to stop.
  std::optional<Interrupt> interrupted_;
  // Rounds of killing at the end that some actors have outlived.
  int kill_rounds_ = 0;
  // Why a group forms as soon as the commit under way has ended.
  std::optional<std::string> forms_when_settled_;
  std::string failure_;
};

}  // namespace troupe::workers
