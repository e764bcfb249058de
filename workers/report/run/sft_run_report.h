#pragma once

#include <string>

#include "base/result.h"
#include "workers/report/run/ended_run.h"
#include "workers/report/text_report.h"

namespace troupe::workers {

/// Draws RUN/loss.png: the losses of training and of held-out samples over steps. Errors: those of draw_loss_curves.
Result<void> draw_losses(const EndedRun& run);

/// Draws the held-out prediction of the last step as prediction.png beside its tensors; nothing where there are none.
/// Errors: data_loss for a damaged file; those of draw_prediction.
Result<void> draw_held_out(const EndedRun& run);

/// With eval.open_loop.at_end and after exit code 0: evaluates the last checkpoint on the episodes held out, as `troupe
/// eval RUN --open-loop` does and with the same files and bytes, and fills in summary.open_loop. Else it does nothing.
/// Errors: those of evaluation_folder and evaluate_checkpoint; failed_precondition for predictions that are not finite.
Result<void> evaluate_open_loop(const EndedRun& run, RunSummary& summary);

/// Fills in the losses (means of the first and last ten steps, the best) and which commands to try next.
void describe_sft_run(const EndedRun& run, RunSummary& summary);

/// The first and last held-out loss, where the charts are, and a warning where it did not fall; empty before the
/// second evaluation.
std::string held_out_text(const EndedRun& run, int exit_code);

}  // namespace troupe::workers
