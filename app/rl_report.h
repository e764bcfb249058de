#pragma once

#include "base/result.h"
#include "configs/job_config.h"
#include "workers/controller/service.h"
#include "workers/report/text_report.h"

namespace troupe::app {

/// Draws RUN/return.png: mean return of the episodes that ended, and of evaluations, over environment steps; and
/// RUN/success.png where the environment knows success. Errors: those of draw_loss_curves.
Result<void> draw_learning_curves(const RunStatistics& statistics, const JobConfig& job, const RunDirectory& run);

/// Fills in what differs from fine-tuning in the report that ends a run: environment steps for samples, mean return
/// (first, last, best) for loss, and which commands to try next.
void describe_rl_run(RunSummary& summary, const RunStatistics& statistics, const RunDirectory& run);

/// The table of the last evaluation (workers/report/rl_report.h); empty without one, or where the environment cannot
/// be made.
std::string last_evaluation(const RunStatistics& statistics, const JobConfig& job);

}  // namespace troupe::app
