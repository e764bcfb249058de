#pragma once

#include "configs/job_config.h"
#include "workers/controller/run_directory.h"
#include "workers/controller/service.h"

namespace troupe {

/// Ends a run for its user: loss curves and the held-out prediction as pictures in the run directory, then the closing block
/// (ux.md 1c) on stdout and in report.txt. A picture that cannot be drawn is a warning, not a failure of the run.
void print_final_report(const ControllerService& service, const JobConfig& job, const RunDirectory& run, int exit_code);

}  // namespace troupe
