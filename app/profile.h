#pragma once

#include <string>

#include "base/metrics.h"
#include "base/trace.h"
#include "workers/controller/run_output.h"

namespace troupe::app {

/// Steps as `--profile` names them: "10:13", or "10" for one step; those behind `steps`, the job's last, are left out.
/// Errors: invalid_argument (also for a first step behind `steps`, or up to `done`, after which the job goes on).
Result<TracedSteps> parse_traced_steps(const std::string& text, std::int64_t done, std::int64_t steps);

/// What `run --profile` does in the controller's process: it hears of every step as the metric files do and, as soon as
/// one lies behind the traced ones, writes FOLDER/trace.json and says the ten longest waits.
class Profile final : public MetricSink {
 public:
  /// `output` is used until finish().
  Profile(std::string folder, TracedSteps steps, RunOutput& output);
  Result<void> write(std::int64_t step, double wall, std::int64_t samples,
                     const std::map<std::string, double>& values) override;
  Result<void> flush() override { return {}; }
  /// The job has ended: writes and says it now, unless that is done. What fails is a warning.
  void finish();

 private:
  /// Writes the trace, and returns what to say of it.
  Result<std::string> write_trace() const;

  const std::string folder_;
  const TracedSteps steps_;
  RunOutput& output_;
  /// The newest that was committed.
  std::int64_t step_ = 0;
  bool finished_ = false;
};

}  // namespace troupe::app
