#pragma once

#include "workers/report/run/ended_run.h"

namespace troupe::workers {

/// Ends a run for its user: curves (loss.png, or return.png and success.png), the held-out prediction as an image, the
/// open-loop evaluation (eval.open_loop.at_end) and failed evaluation episodes as videos in the run directory, then the
/// closing report on stdout and in report.txt.
/// What cannot be drawn or written is a warning on stdout, not a failure of the run. Call when the job has ended.
void print_final_report(const EndedRun& run, int exit_code);

}  // namespace troupe::workers
