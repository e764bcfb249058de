#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.h"
#include "configs/job_config.h"

namespace troupe::app {

/// What a policy step of one block took in a run on this machine.
struct TimedStep {
  double seconds = 0;
  /// Environments of the block, and actions that each of them executed.
  std::int64_t rows = 1;
  std::int64_t exec_steps = 1;
  /// Day of the run, "2026-11-27".
  std::string day;
};

/// Keeps what a policy step of a block of `job` took in a run on this machine alone, that ends now: in the user's cache
/// (step_times.json, app/machine_cache.h), by environment, profile and kind of policy. Without `seconds` nothing is
/// kept.
void keep_step_time(const JobConfig& job, std::optional<double> seconds,
                    const base::Clock& clock = base::system_clock());

/// What was kept last of a job's environment, profile and kind of policy, on this processor and as many cores.
std::optional<TimedStep> kept_step_time(const JobConfig& job);

/// What a control step of one environment took one thread, in a run on this machine.
struct TimedEnvStep {
  double seconds = 0;
  /// Day of the run, "2026-11-27".
  std::string day;
};

/// Keeps it as keep_step_time does, by environment, profile and options, whatever the policy. Without `seconds` nothing
/// is kept.
void keep_env_step_time(const JobConfig& job, std::optional<double> seconds,
                        const base::Clock& clock = base::system_clock());

/// What was kept last of a job's environment, profile and options, on this processor and as many cores.
std::optional<TimedEnvStep> kept_env_step_time(const JobConfig& job);

/// Cores of this machine that times are kept for.
std::int64_t timed_cores();

/// "120 us", "4 ms", "1.5 s": three digits.
std::string step_time_text(double seconds);

/// The line of a plan that says what a trajectory item is and how long it takes; scaled to its environments where the
/// timed block had others. `is_here`: the plan is this machine's, so that kept times are its.
std::string item_line(const JobConfig& job, bool is_here, const std::optional<TimedStep>& timed);

}  // namespace troupe::app
