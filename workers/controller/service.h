#pragma once

#include <chrono>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/metric_sinks.h"
#include "workers/controller/job_controller.h"
#include "workers/controller/membership.h"
#include "workers/controller/run_statistics.h"
#include "workers/role.h"

namespace troupe {

/// The controller as one object: the job's state machine, its members, its metrics and its answers to the command line.
/// Called from one actor; `outbox` and `print` must not block.
class ControllerService final : public ControllerEffects {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  struct Setup {
    JobController::Setup job;
    std::string config_yaml;  ///< resolved, for nodes that join
    std::chrono::milliseconds lease{10'000};
    std::function<double()> wall_seconds;  ///< for logs and metric files only
  };
  /// Prints one line for the person at the terminal.
  using Print = std::function<void(Severity, const std::string&)>;

  ControllerService(Setup setup, Membership& membership, StateDb& db, std::vector<std::unique_ptr<MetricSink>> sinks,
                    Outbox outbox, Print print);
  ~ControllerService() override;

  void start(TimePoint now);
  void handle(const std::string& from, const Message& message, TimePoint now);
  void tick(TimePoint now);
  void interrupt(const std::string& why, TimePoint now);
  /// Set when the job has ended and every actor with it.
  std::optional<int> exit_code() const { return job_.exit_code(); }

  const JobController& job() const { return job_; }
  const RunStatistics& statistics() const { return statistics_; }
  /// Wall time from start() to the job's end, or to the last tick.
  double seconds() const { return std::chrono::duration<double>(last_tick_ - started_).count(); }
  /// Lines worth repeating in the final report.
  const std::vector<std::string>& notable_events() const { return notable_; }

  // ControllerEffects
  void send(const std::string& to, const Message& message) override;
  void event(Severity severity, const std::string& kind, const std::string& text) override;
  void step(const StepReport& report) override;
  void evaluated(const EvalReport& report) override;
  void producer_times(const std::string& role, double idle_seconds, double busy_seconds) override;

 private:
  void join(const std::string& from, const Join& request, TimePoint now);
  void write_metrics(std::int64_t step, const std::map<std::string, double>& values);
  void list_bad_clip(const std::string& text, double wall);
  std::string progress(const StepReport& report) const;
  std::string rl_progress(const StepReport& report) const;
  std::string bottleneck() const;
  void add_producer_shares(std::map<std::string, double>& metrics);
  std::int64_t samples_at(std::int64_t step) const;

  const Setup setup_;
  Membership& membership_;
  StateDb& db_;
  std::vector<std::unique_ptr<MetricSink>> sinks_;
  const Outbox outbox_;
  const Print print_;
  std::ofstream events_, bad_clips_;  // the second one is opened by its first line
  std::set<std::pair<std::string, std::int64_t>> listed_clips_;
  std::map<std::string, std::uint64_t> introduced_;  // incarnation of each node that was told to the job
  RunStatistics statistics_;
  std::vector<std::string> notable_;
  std::int64_t newest_step_ = 0;
  TimePoint started_{}, last_tick_{};
  struct IdleBusy {
    double idle = 0, busy = 0;
  };
  std::map<std::string, IdleBusy> producers_;  // seconds by role since the last step's metrics
  std::map<std::string, double> busy_share_;   // the newest of each role
  bool metrics_failed_ = false;
  JobController job_;
};

}  // namespace troupe
