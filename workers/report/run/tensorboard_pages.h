#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "configs/job_config.h"
#include "placement/plan.h"
#include "workers/checkpoint/run_directory.h"

namespace troupe::workers {

// What RUN/tb shows of a run besides its curves (docs/metrics.md#tensorboard). Each call writes an event file of its
// own, which is whole when it returns; none touches a run whose metrics.sinks lacks tensorboard. Errors of all: those
// of TensorboardFile.

/// At a start: configuration and plan as text, hyperparameters as a session. `step`: where the run begins.
Result<void> write_start_pages(const JobConfig& job, const std::string& resolved_yaml, const Plan& plan,
                               const RunDirectory& run, std::int64_t step);

/// At the end: RUN/*.png and what RUN/eval/step_STEP holds of pictures, and how the session ended. A stopped run's
/// session stays open, since it may go on. Errors: those of reading a picture, too.
Result<void> write_end_pages(const JobConfig& job, const RunDirectory& run, std::int64_t step, int exit_code);

/// One picture that was drawn later, for a run that has event files; its tag is the file's name without the ending.
/// Errors: those of reading it, too.
Result<void> add_picture_page(const RunDirectory& run, std::int64_t step, const std::string& png);

}  // namespace troupe::workers
