#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/metric_sinks.h"
#include "comm/control/outbox.h"
#include "workers/controller/background.h"
#include "workers/controller/job_controller.h"
#include "workers/controller/line_file.h"
#include "workers/controller/membership.h"
#include "workers/controller/peer_book.h"
#include "workers/controller/phase_window.h"
#include "workers/controller/progress_reporter.h"
#include "workers/controller/run_output.h"
#include "workers/controller/run_statistics.h"
#include "workers/node/awake_clock.h"

namespace troupe::workers {

/// The controller as one object: the job's state machine, its members, its metrics and its answers to the command line.
/// Called from one actor; `outbox` and `output` must not block. Files are written in the background, in order.
///
/// - From nodes: Join is answered with Joined or a Reply of code 2, Heartbeat with HeartbeatAck.
/// - From the command line: Scale, StatusQuery and StopJob are answered with Reply.
/// - Everything else goes to JobController, if it comes from an actor's newest start ("decoder/0#1") or from the node
///   that hosts it. When the job has ended, every further node is told Finish.
///
/// A call that comes late finds that time has stood still (AwakeClock): nobody is judged for silence while this
/// process could not hear.
class ControllerService final : public ControllerEffects {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  struct Setup {
    JobController::Setup job;
    /// Resolved, for nodes that join.
    std::string config_yaml;
    /// As env_spec.json holds it, likewise; empty: the job has no environment.
    std::string env_spec = {};
    /// Predicted of the job's steps, where it was.
    std::optional<StepExpectation> expected = {};
    /// How long a node may be silent; it is told so in Joined.
    std::chrono::milliseconds lease{10'000};
    /// How long a node keeps what it hosts when it hears nothing of the controller.
    std::chrono::milliseconds orphan{60'000};
    /// Nothing more goes to this name or is heard of it: its actor or node has ended. May be empty.
    std::function<void(const std::string& name)> forget = {};
    /// Seconds since 1970, for events and metric files only; deadlines use the steady clock.
    std::function<double()> wall_seconds;
    /// Told who has joined and what was placed where, for those who judge messages.
    std::shared_ptr<PeerBook> peers = std::make_shared<PeerBook>();
  };
  /// `membership`, `db` and `output` are not owned and outlive it. Appends to events.jsonl of the run directory.
  ControllerService(Setup setup, Membership& membership, StateDb& db, std::vector<std::unique_ptr<MetricSink>> sinks,
                    Outbox outbox, RunOutput& output, std::unique_ptr<Background> background);
  ~ControllerService() override;

  /// Starts the job and its clock.
  void start(TimePoint now);
  /// Any control message; `from` is where an answer goes.
  void handle(const std::string& from, const Message& message, TimePoint now);
  /// What the background has done, leases, then the job's deadlines. Call about every 50 ms.
  void tick(TimePoint now);
  /// Waits until all is written. False: not within `deadline`, or state.db cannot be written.
  bool wait_until_written(std::chrono::milliseconds deadline);
  void interrupt(const Interrupt& interrupt, TimePoint now);
  /// Set when the job has ended and every actor with it.
  std::optional<int> exit_code() const { return job_.exit_code(); }

  const JobController& job() const { return job_; }
  const RunStatistics& statistics() const { return statistics_; }
  const std::optional<StepExpectation>& expected() const { return setup_.expected; }
  /// Wall time from start() to the job's end, or to the last tick.
  double seconds() const { return Seconds(last_tick_ - started_).count(); }
  /// Warnings and errors, as "kind: text", for the final report; the first 20.
  const std::vector<std::string>& notable_events() const { return notable_; }
  /// Mean time of a policy step of a block in the items that rollout workers delivered; nothing: none said so.
  std::optional<double> policy_step_seconds() const;
  /// Mean time of one thread in a control step of one environment (ProducerTimes); nothing: none said so.
  std::optional<double> env_step_seconds() const;
  /// The checkpoint that checkpoint.keep_best keeps. Errors: those of StateDb.
  Result<std::optional<BestRecord>> best() const { return db_.best(); }

  // ControllerEffects
  void send(const std::string& to, const Message& message) override;
  void event(Severity severity, const std::string& kind, const std::string& text) override;
  void step(const StepReport& report) override;
  void evaluated(const EvalReport& report) override;
  void producer_times(const std::string& role, const ProducerTimes& times) override;
  /// Appends to bad_clips.jsonl, once for each group of pictures.
  void bad_clip(const BadClip& clip, const std::string& text) override;
  void actor_ended(const std::string& instance) override { forget(instance); }
  /// Appends to quarantine.jsonl, once for each sample.
  void quarantined(const Quarantined& sample) override;
  void in_background(Background::Work work, Background::Then then) override;
  void record(Background::Work work, std::function<void()> then) override;

 private:
  /// Answers Join; one that comes again is not announced again. A newer process takes the name of the one before,
  /// which is told so.
  void join(const std::string& from, const Join& request, TimePoint now);
  /// Who the sender `from` is to the job, by its name there; nothing: it may not say this now.
  std::optional<std::string> speaker_of(const std::string& from, const Message& message) const;
  /// The member's agent, which hosts actors: "node/1#INCARNATION".
  static std::string agent_of(const Membership::Member& member);
  void forget(const std::string& name);
  /// Of the job, and where it stands.
  std::string status_json(TimePoint now) const;
  /// What lines of the run directory begin with.
  nlohmann::json line() const;
  /// Adds a line to one of the files.
  void append(LineFile& file, const nlohmann::json& line);
  /// Begins the oldest of what state.db is owed.
  void write_record();
  /// Writes to every sink. A failure is an event once, and so is a disk that falls behind; training goes on without
  /// curves.
  /// `then`, which may be empty, once the files have them or lack them for good: who reads a line of them on the
  /// terminal finds them there.
  void write_metrics(std::int64_t step, const std::map<std::string, double>& values, std::function<void()> then);
  /// Adds ProgressReporter::idle_metric of each role: idle / (idle + busy) since the step before; the mean time of a
  /// policy step; and where a window of phases ends with this step, phase/....
  void add_producer_shares(std::map<std::string, double>& metrics);

  const Setup setup_;
  const std::unique_ptr<const ProgressReporter> reporter_;
  Membership& membership_;
  StateDb& db_;
  std::vector<std::unique_ptr<MetricSink>> sinks_;
  const Outbox outbox_;
  RunOutput& output_;
  LineFile events_, bad_clips_, quarantine_;
  std::set<std::pair<std::string, std::int64_t>> listed_clips_;
  std::set<std::pair<bool, std::int64_t>> listed_samples_;
  RunStatistics statistics_;
  std::vector<std::string> notable_;
  std::int64_t newest_step_ = 0;
  // Of the newest step.
  std::optional<LiveLine> live_;
  TimePoint started_{}, last_tick_{};
  // Seconds by role since the last step's metrics.
  std::map<std::string, ProducerTimes> producers_;
  // Of the whole run.
  std::int64_t item_steps_ = 0, env_steps_ = 0;
  double item_seconds_ = 0, env_seconds_ = 0;
  PhaseWindow window_;
  // Of the last window that ended.
  std::optional<PhaseShares> phases_;
  bool metrics_failed_ = false;
  // What state.db is owed, oldest first; the first is being written unless it failed and waits.
  struct Record {
    Background::Work work;
    std::function<void()> then;
  };
  std::deque<Record> records_;
  std::optional<TimePoint> record_at_;
  bool records_failed_ = false;
  AwakeClock clock_;
  JobController job_;
  std::unique_ptr<Background> background_;  // last: it ends first, when all is written
};

}  // namespace troupe::workers
