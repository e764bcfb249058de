#pragma once

#include "configs/job_config.h"
#include "workers/controller/run_directory.h"
#include "workers/controller/service.h"

namespace troupe::app {

/// Ends a run for its user: curves (loss.png, or return.png and success.png), the held-out prediction as an image and
/// failed evaluation episodes as videos in the run directory, then the closing report on stdout and in report.txt.
/// What cannot be drawn or written is a warning on stdout, not a failure of the run. Call when the job has ended.
void print_final_report(const ControllerService& service, const JobConfig& job, const RunDirectory& run, int exit_code);

}  // namespace troupe::app
