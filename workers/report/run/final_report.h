#pragma once

#include <string>

#include "workers/report/run/ended_run.h"
#include "workers/report/text_report.h"

namespace troupe::workers {

/// Ends a run for its user: curves (loss.png, or return.png and success.png), the held-out prediction as an image, the
/// open-loop evaluation (eval.open_loop.at_end) and failed evaluation episodes as videos in the run directory, and the
/// closing report, which is returned for a terminal of `style` and written to report.txt (at first without what is
/// evaluated and drawn) and, with all else that the run left, to report.html. TensorBoard's event files get the
/// pictures, too. What cannot be drawn or written is a warning in front of it, not a failure of the run. Call when the
/// job has ended.
std::string final_report(const EndedRun& run, int exit_code, const TextStyle& style);

}  // namespace troupe::workers
