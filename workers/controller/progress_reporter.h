#pragma once

#include <memory>
#include <optional>
#include <string>

#include "comm/control/messages.h"
#include "configs/job_config.h"
#include "placement/plan.h"
#include "workers/controller/run_statistics.h"
#include "workers/report/live_line.h"
#include "workers/report/phase_shares.h"
#include "workers/report/step_expectation.h"

namespace troupe::workers {

/// How a kind of job counts its steps, and what it tells the person at the terminal: all that the controller's service
/// does differently for fine-tuning and for reinforcement learning. Immutable.
class ProgressReporter {
 public:
  /// `job` is not owned and outlives it. `expected`: what was predicted of its steps, where it was.
  static std::unique_ptr<const ProgressReporter> make(const JobConfig& job, const Plan& plan,
                                                      const std::optional<StepExpectation>& expected);
  virtual ~ProgressReporter() = default;

  /// Samples, or environment steps, that one step is planned to have.
  virtual std::int64_t samples_per_step() const = 0;
  /// The metric that says how many it had; empty: always samples_per_step().
  virtual std::string samples_metric() const = 0;
  /// The metric that says which share of its time a producing role was idle.
  virtual std::string idle_metric(const std::string& role) const = 0;
  /// The progress line of a step, without the last newline. `phases`: the newest, where any are known.
  virtual std::string step(const StepReport& report, const RunStatistics& statistics,
                           const std::optional<PhaseShares>& phases) const = 0;
  /// Where the job stands after a step, without its restarts.
  virtual LiveLine live(const StepReport& report, const RunStatistics& statistics,
                        const std::optional<PhaseShares>& phases) const = 0;
  /// The line of an evaluation.
  virtual std::string evaluation(const EvalReport& report) const = 0;
};

}  // namespace troupe::workers
