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

/// Fills in the losses (means of the first and last ten steps, the best) and which commands to try next.
void describe_sft_run(const EndedRun& run, RunSummary& summary);

/// The first and last held-out loss, where the charts are, and whether it fell at all; empty before the second
/// evaluation.
std::string held_out_text(const EndedRun& run, int exit_code);

}  // namespace troupe::workers
