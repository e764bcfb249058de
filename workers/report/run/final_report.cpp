#include "workers/report/run/final_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "base/durable_file.h"
#include "base/file_io.h"
#include "workers/checkpoint/commit.h"
#include "workers/report/run/rl_run_report.h"
#include "workers/report/run/run_page.h"
#include "workers/report/run/sft_run_report.h"
#include "workers/report/run/tensorboard_pages.h"

namespace troupe::workers {

namespace {

/// What the report shows of one kind of job.
struct KindReport {
  Result<void> (*draw_curves)(const EndedRun& run);
  void (*describe)(const EndedRun& run, RunSummary& summary);
  std::string (*results)(const EndedRun& run, int exit_code);
};

const KindReport& report_of(JobKind kind) {
  static constexpr KindReport kSft{draw_losses, describe_sft_run, held_out_text};
  static constexpr KindReport kRl{draw_learning_curves, describe_rl_run, rl_results_text};
  return kind == JobKind::rl ? kRl : kSft;
}

/// What every kind of job has.
RunSummary summarise(const EndedRun& run, int exit_code) {
  const RunStatistics& s = run.statistics();
  const JobController& controller = run.service.job();
  RunSummary summary{
      .name = run.job.job.name, .steps = controller.step(), .seconds = run.service.seconds(), .exit_code = exit_code};
  summary.not_finite = s.curve("train/loss").not_finite();
  summary.void_batches = s.skipped();
  summary.restarts = controller.restarts();
  summary.samples_per_second_mean = s.samples_per_second();
  summary.samples_per_second_p50 = s.samples_per_second_quantile(0.5);
  summary.samples_per_second_p05 = s.samples_per_second_quantile(0.05);
  if (const auto& expected = run.service.expected()) {
    summary.seconds_per_step = s.seconds_per_step();
    summary.predicted_seconds = expected->seconds;
    summary.product_share_percent = expected->product_share_percent(s.seconds_per_step());
  }
  summary.compute_percent = s.compute_percent();
  summary.exposed_comm_percent = s.vote_percent();
  summary.stall_percent = s.stall_percent();
  summary.checkpoint_percent = s.checkpoint_percent();
  summary.other_percent = std::max(0.0, 100.0 - summary.compute_percent - summary.exposed_comm_percent -
                                            summary.stall_percent - summary.checkpoint_percent);
  summary.events = run.service.notable_events();
  const std::string& saved = controller.checkpoints().committed_directory();
  if (!saved.empty()) {
    summary.checkpoint = std::filesystem::relative(saved, run.directory.root()).string();
    summary.checkpoint_bytes = bytes_below(saved);
  }
  if (const auto best = run.service.best(); run.job.checkpoint.keeps_best() && best && *best) {
    summary.best =
        fmt::format("{} ({} {:.4g})", checkpoint_name((*best)->step), run.job.checkpoint.keep_best, (*best)->value);
  }
  return summary;
}

std::string warning_of(const Result<void>& done) {
  return done ? std::string() : fmt::format("warning: {}\n", done.error().message());
}

}  // namespace

FinalReport final_report(const EndedRun& run, int exit_code, const TextStyle& style) {
  const KindReport& kind = report_of(run.job.job.kind);
  RunSummary summary = summarise(run, exit_code);
  kind.describe(run, summary);
  // Evaluations may take long and be cut short; the job has ended all the same.
  std::string warnings = warning_of(write_file_durably(run.directory.path("report.txt"), run_report(summary)));
  const Result<void> drawn = kind.draw_curves(run);
  if (run.statistics().steps() > 0) warnings += warning_of(drawn);
  warnings += warning_of(draw_held_out(run));
  warnings += warning_of(evaluate_open_loop(run, summary));
  warnings += warning_of(write_end_pages(run.job, run.directory, run.service.job().step(), exit_code));
  const std::string results = kind.results(run, exit_code) + fmt::format("  page      {}/report.html\n", run.folder());
  const std::string plain = run_report(summary) + results;
  warnings += warning_of(write_file_durably(run.directory.path("report.txt"), plain));
  warnings += warning_of(write_run_page(run.directory, &run.statistics()));
  return {.styled = warnings + run_report(summary, style) + results, .plain = warnings + plain};
}

}  // namespace troupe::workers
