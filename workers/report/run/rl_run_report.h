#pragma once

#include <string>

#include "base/result.h"
#include "workers/report/run/ended_run.h"
#include "workers/report/text_report.h"

namespace troupe::workers {

/// Draws RUN/return.png: mean return of the episodes that ended, and of evaluations, over environment steps; and
/// RUN/success.png where the environment knows success. Errors: those of draw_loss_curves.
Result<void> draw_learning_curves(const EndedRun& run);

/// Fills in environment steps for samples, mean return (first, last, best) for loss, and which commands to try next.
void describe_rl_run(const EndedRun& run, RunSummary& summary);

/// The table of the last evaluation (workers/report/rl_report.h) where there is one, and where the curve is.
/// After exit code 0 it plays the last evaluation again from the last checkpoint, with the same bits, and writes
/// videos of its failures (eval.videos of them) below RUN/eval: none where nothing failed or the environment has no
/// camera. That takes as long as an evaluation. What fails is a warning in the text.
std::string rl_results_text(const EndedRun& run, int exit_code);

}  // namespace troupe::workers
