#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "comm/control/messages.h"
#include "configs/job_config.h"
#include "placement/plan.h"
#include "workers/controller/actor_table.h"
#include "workers/controller/checkpoint_coordinator.h"
#include "workers/controller/effects.h"
#include "workers/controller/run_directory.h"
#include "workers/controller/state_db.h"
#include "workers/node/restart_policy.h"

namespace troupe {

/// Where a job stands (control-plane.md 10, the states that supervised fine-tuning passes through).
enum class JobState : std::uint8_t { starting, recovering, running, draining, stopping, done, failed, stopped };
std::string_view to_string(JobState state) noexcept;

/// One job's state machine: spawns the planned actors, forms the learner group in ever new epochs, restarts what dies,
/// commits checkpoints, scales pools, and ends. Purely event-driven: no sockets, no threads, no clock of its own.
/// Every method is called from one actor.
class JobController {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  struct Setup {
    JobConfig config;
    Plan plan;
    RunDirectory run;
    std::string runtime_dir;  ///< for the group's stores
    std::uint64_t term = 1;
    std::int64_t resume_step = 0;
    std::string resume_checkpoint;  ///< folder; empty: initial state
    std::int64_t num_eval = 0;      ///< held-out samples
  };

  JobController(Setup setup, StateDb& db, ControllerEffects& effects);

  /// Spawns everything.
  void start(TimePoint now);
  /// Any message of an actor or node.
  void handle(const std::string& from, const Message& message, TimePoint now);
  /// Deadlines, restarts, retries. Call about every 100 ms.
  void tick(TimePoint now);
  /// Stop with a checkpoint (Ctrl-C, `status --stop`); a second call stops at once.
  void interrupt(const std::string& why, TimePoint now);
  /// Node `rank` joined (again): actors may be placed there.
  void node_joined(const NodeSnapshot& node, std::int64_t rank);
  /// Node `rank` is lost: its actors count as gone.
  void node_lost(std::int64_t rank, TimePoint now);

  /// `troupe scale`. The text is JSON on success; code 2 or 3 and a sentence otherwise.
  Reply scale(const Scale& request, TimePoint now);
  /// JSON for `troupe status`.
  std::string status_json(TimePoint now) const;

  JobState state() const { return state_; }
  /// Set when every actor has ended: 0 done, 4 failed, 130 stopped by signal.
  std::optional<int> exit_code() const;
  const std::string& failure() const { return failure_; }
  std::int64_t step() const { return step_; }
  std::int64_t restarts() const { return restarts_; }
  std::int64_t void_samples() const { return static_cast<std::int64_t>(void_positions_.size()); }
  const CheckpointCoordinator& checkpoints() const { return checkpoints_; }
  const Plan& plan() const { return setup_.plan; }
  const ActorTable& actors() const { return actors_; }

 private:
  void on(const std::string& from, const ActorUp& m, TimePoint now);
  void on(const std::string& from, const ActorExited& m, TimePoint now);
  void on(const std::string& from, const GroupUp& m, TimePoint now);
  void on(const std::string& from, const GroupAbort& m, TimePoint now);
  void on(const std::string& from, const StepReport& m, TimePoint now);
  void on(const std::string& from, const EvalReport& m, TimePoint now);
  void on(const std::string& from, const Event& m, TimePoint now);
  void on(const std::string& from, const SnapshotReady& m, TimePoint now);
  void on(const std::string& from, const CheckpointDone& m, TimePoint now);
  void on(const std::string& from, const Finished& m, TimePoint now);
  template <class Other>
  void on(const std::string& from, const Other& m, TimePoint now);

  void spawn(ActorRecord& actor, TimePoint now);
  void stop(ActorRecord& actor, std::chrono::milliseconds grace, const std::string& reason);
  void plan_restart(ActorRecord& actor, const ActorExited& exit, TimePoint now);
  void lose_learner(const ActorRecord& actor, const std::string& why, TimePoint now);
  void form_group(const std::string& reason, TimePoint now);
  void watch_group(TimePoint now);
  bool kill_silent(std::chrono::milliseconds longer_than, TimePoint now);
  void introduce(const ActorRecord& actor);
  void send_peers(const ActorRecord& producer);
  void producer_gone(const std::string& role, const std::string& instance);
  void set_state(JobState state, TimePoint now);
  void fail(const std::string& why, TimePoint now);
  void stop_everything(TimePoint now);
  bool everything_ended() const;
  void check_void_budget(TimePoint now);
  void report_memory();
  Message with_environment(const ActorRecord& actor) const;

  Setup setup_;
  StateDb& db_;
  ControllerEffects& effects_;
  ActorTable actors_;
  RestartPolicy restart_policy_;
  CheckpointCoordinator checkpoints_;
  ClusterSnapshot cluster_;
  JobState state_ = JobState::starting;
  TimePoint state_since_{};
  std::uint64_t epoch_ = 0;
  std::uint64_t fence_ = 0;
  std::set<std::string> group_up_;
  std::set<std::string> finished_;
  std::map<std::string, TimePoint> silent_since_;  // learners that owe an answer to their group's plan, and since when
  std::optional<TimePoint> regroup_at_;            // a collective failed and nobody has died yet
  int fruitless_groups_ = 0;                       // formed without a committed step in between
  std::int64_t step_ = 0;
  std::set<std::int64_t> void_positions_;
  std::map<std::string, double> last_metrics_;
  std::map<std::string, std::int64_t> learner_bytes_;
  std::int64_t restarts_ = 0;
  bool interrupted_ = false;
  bool final_checkpoint_lost_ = false;
  std::string failure_;
  TimePoint last_progress_{};
};

}  // namespace troupe
