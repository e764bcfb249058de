// One training step of a rank as a transaction, and held-out evaluation.
#include <fmt/format.h>

#include <cmath>

#include "base/fault.h"
#include "base/stopwatch.h"
#include "base/trace.h"
#include "placement/evaluation.h"
#include "workers/learner/rank.h"

namespace troupe::workers {

namespace {

double metric_or_nan(const StepOutcome& outcome, const char* name) {
  const auto found = outcome.metrics.find(name);
  return found == outcome.metrics.end() ? std::nan("") : found->second;
}

}  // namespace

Result<void> LearnerRank::watch_divergence(std::int64_t step, const StepOutcome& outcome) {
  if (outcome.applied) {
    divergence_.applied(step + 1, metric_or_nan(outcome, "train/grad_norm"));
    return {};
  }
  const double rate = setup_.config.optimizer.lr;
  // Of several in a row the first is told; all are counted.
  if (is_rank_zero() && divergence_.in_a_row() == 0) {
    report_(Event{
        .actor = setup_.actor,
        .kind = "void_step",
        .text = fmt::format(
            "step {}: loss or gradient is not finite, on a second try too; the step counts without an update ({})",
            step + 1, divergence_.story(rate))});
  }
  return divergence_.discarded(step + 1, rate);
}

Result<void> LearnerRank::append_ledger(std::int64_t step, const StepOutcome& outcome) {
  LedgerRecord record{.fence = plan_.fence, .step = step, .rank = plan_.rank, .counters = outcome.counters};
  for (const ConsumedItem& item : outcome.consumed) {
    record.positions.push_back(item.position);
    record.xxh3.push_back(item.xxh3);
    const std::string why = !item.void_reason.empty() ? item.void_reason
                            : outcome.applied         ? ""
                                                      : "non-finite loss or gradient";
    if (!why.empty()) record.voids.push_back({.position = item.position, .reason = why});
  }
  const bool waited = !ledger_->waits_for().empty();
  TROUPE_TRY(ledger_->append(record));
  if (const std::string& why = ledger_->waits_for(); !why.empty() && !waited)
    report_(Event{.actor = setup_.actor,
                  .kind = "ledger_waits",
                  .text = why + "; lines wait in memory, and no checkpoint is made until they are written"});
  return {};
}

StepReport LearnerRank::report_of(std::int64_t step, const StepOutcome& outcome) const {
  StepReport report{.actor = setup_.actor, .fence = plan_.fence, .step = step + 1};
  for (const ConsumedItem& item : outcome.consumed) {
    if (!item.void_reason.empty() || !outcome.applied) report.void_positions.push_back(item.position);
    if (!item.void_reason.empty()) report.bad_positions.push_back(item.position);
  }
  return report;
}

void LearnerRank::report_step(std::int64_t step, const StepOutcome& outcome, double checkpoint_seconds) {
  StepReport report = report_of(step, outcome);
  const double step_seconds = seconds_since(last_commit_);
  last_commit_ = std::chrono::steady_clock::now();
  if (is_rank_zero()) {
    report.metrics = outcome.metrics;
    report.metrics["train/applied"] = outcome.applied ? 1.0 : 0.0;
    report.metrics["time/step"] = step_seconds;
    report.metrics["time/stall"] = outcome.stall_seconds;
    report.metrics["time/compute"] = outcome.compute_seconds;
    report.metrics["time/vote"] = outcome.vote_seconds;
    report.metrics["time/checkpoint"] = checkpoint_seconds;
  }
  report_(report);
}

Result<bool> LearnerRank::train_step(std::int64_t step) {
  trace_step(step + 1);
  const Span span("step");
  TROUPE_ASSIGN(StepOutcome outcome, trainer_.step(step, finish_));
  TROUPE_TRY(append_ledger(step, outcome));
  TROUPE_TRY(watch_divergence(step, outcome));
  trainer_.committed(step, outcome);
  const JobConfig& config = setup_.config;
  const bool last = step + 1 == config.training.steps;
  const bool finish = outcome.finish || last;
  double checkpoint_seconds = 0;
  if (finish || (step + 1) % config.checkpoint.interval == 0) {
    // What did not count goes into the checkpoint, which the controller describes once it has all snapshots.
    if (const StepReport early = report_of(step, outcome); !early.void_positions.empty()) report_(early);
    const auto begin = std::chrono::steady_clock::now();
    TROUPE_TRY(snapshot(step + 1));
    checkpoint_seconds = seconds_since(begin);
  }
  report_step(step, outcome, checkpoint_seconds);
  if (is_evaluated(config, step + 1)) TROUPE_TRY(evaluate(step + 1));
  TROUPE_TRY(
      fault_point("learner.committed", fmt::format("{}#{} step {}", setup_.actor, setup_.incarnation, step + 1)));
  return finish;
}

Result<void> LearnerRank::evaluate(std::int64_t step) {
  const Span span("held-out evaluation");
  TROUPE_ASSIGN(auto metrics, trainer_.evaluate(step));
  if (metrics.empty() || !is_rank_zero()) return {};
  report_(EvalReport{.actor = setup_.actor, .fence = plan_.fence, .step = step, .metrics = std::move(metrics)});
  return {};
}

}  // namespace troupe::workers
