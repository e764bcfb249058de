// `troupe sweep JOB`: a job with several seeds and values, and what came of it on one page.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "actors/actor_process.h"
#include "app/commands.h"
#include "app/exit_code.h"
#include "app/interrupt_flag.h"
#include "app/job_setup.h"
#include "base/durable_file.h"
#include "workers/controller/resume.h"
#include "workers/report/compare/compare_page.h"
#include "workers/report/compare/comparison_tables.h"
#include "workers/report/compare/group_chart.h"
#include "workers/report/text_report.h"
#include "workers/sweep/sweep_runner.h"

namespace troupe::app {

namespace {

/// Whether all runs can begin or go on. Says the first mistake of any run's configuration, or which setting differs
/// from the run of its name that is there.
bool all_fit(const std::string& job, const std::vector<SweptRun>& runs) {
  return std::all_of(runs.begin(), runs.end(), [&](const SweptRun& run) {
    const auto config = load_or_explain(job, run.overrides);
    if (!config) return false;
    const auto point = resolve_resume(*config, "auto");
    if (point || point.error().code() != Errc::invalid_argument) return true;
    complain(
        {Errc::invalid_argument,
         fmt::format("{} is there with other settings, and a sweep goes on with its runs: another job.name gives it "
                     "new ones\n{}",
                     run.name, point.error().message())});
    return false;
  });
}

void say_end(const SweepEnd& end, std::size_t ended, std::size_t all) {
  fmt::print("[{}/{}] {} {} {}\n", ended, all, end.name,
             end.is_done ? "done in" : fmt::format("failed ({}) after", end.how), duration_text(end.seconds));
  std::fflush(stdout);
  if (!end.is_done && !end.tail.empty()) fmt::print(stderr, "{}\n", end.tail);
}

/// The newest run of every name.
Result<std::vector<RunGroup>> groups_of(const std::vector<std::string>& names, const std::string& run_root) {
  std::vector<ComparedRun> runs;
  for (const std::string& name : names) {
    TROUPE_ASSIGN(const RunDirectory directory, find_run(name, run_root));
    TROUPE_ASSIGN(ComparedRun run, read_compared_run(directory));
    runs.push_back(std::move(run));
  }
  return group_runs(std::move(runs));
}

/// Prints the table of what is done, and writes it with its picture and page into `folder`.
Result<void> report_sweep(const std::string& title, const std::vector<std::string>& done, const std::string& run_root,
                          const std::string& folder) {
  TROUPE_ASSIGN(const auto groups, groups_of(done, run_root));
  const std::string tables = markdown_table(group_table(groups));
  std::string text =
      fmt::format("# {}\n\nInterquartile mean of the seeds [95% bootstrap interval].\n\n{}", title, tables);
  if (const std::string tests = markdown_table(paired_table(groups)); !tests.empty())
    text += fmt::format("\nEach group minus {}, seed by seed:\n\n{}", groups.front().label, tests);
  text += fmt::format("\nRuns:\n\n{}", markdown_table(run_table(groups)));
  TROUPE_TRY(write_file_durably(folder + "/sweep.md", text));
  TROUPE_TRY(write_file_durably(folder + "/sweep.html", compare_page(title, groups)));
  TROUPE_TRY(draw_groups(folder + "/sweep.png", title, groups));
  fmt::print("\n{}\nwritten: {}/sweep.md, sweep.html, sweep.png\n", tables, folder);
  return {};
}

}  // namespace

int sweep_command(const SweepCommandOptions& options) {
  std::vector<std::string> plain;  // without lists, for the name and the folder of runs
  for (const std::string& word : options.overrides) {
    if (split_values(word.substr(word.find('=') + 1)).size() < 2) plain.push_back(word);
  }
  auto base = load_or_explain(options.job, plain);
  if (!base) return kUsage;
  const JobConfig& job = base->job;
  if (options.episodes > 0 && job.job.kind != JobKind::rl) {
    return complain({Errc::invalid_argument,
                     "--episodes is how many a policy plays in its environment; this job fine-tunes on recordings: "
                     "eval.open_loop.at_end=true evaluates each run"});
  }
  const auto runs = plan_sweep(job.job.name, options.seeds, options.overrides);
  if (!runs) return complain(runs.error());
  if (!all_fit(options.job, *runs)) return kUsage;
  // once, before several runs would make it
  if (auto made = make_quickstart_data(*base); !made) return complain(made.error(), kFailed);
  const std::string folder =
      options.out.empty() ? job.job.run_root + "/" + sweep_name(job.job.name, options.overrides) : options.out;
  fmt::print("sweep of {}: {} runs, {} at a time; what they say is in {}/logs\n", job.job.name, runs->size(),
             options.at_once, folder);
  std::fflush(stdout);
  std::vector<std::string> done;
  std::size_t ended = 0;
  const bool is_whole = run_sweep(*runs,
                                  {.program = actors::own_executable(),
                                   .job = options.job,
                                   .run_root = job.job.run_root,
                                   .logs = folder + "/logs",
                                   .at_once = options.at_once,
                                   .episodes = options.episodes},
                                  interrupt_flag(), [&](const SweepEnd& end) {
                                    say_end(end, ++ended, runs->size());
                                    if (end.is_done) done.push_back(end.name);
                                  });
  std::sort(done.begin(), done.end(), [&](const std::string& a, const std::string& b) {
    const auto place = [&](const std::string& name) {
      return std::find_if(runs->begin(), runs->end(), [&](const SweptRun& run) { return run.name == name; });
    };
    return place(a) < place(b);
  });
  if (!done.empty()) {
    const auto reported = report_sweep(fmt::format("Sweep of {}", job.job.name), done, job.job.run_root, folder);
    if (!reported) return complain(reported.error(), kFailed);
  }
  if (!is_whole) {
    fmt::print("stopped with {} of {} runs at their end; the same command goes on\n", done.size(), runs->size());
    return kInterrupted;
  }
  return done.size() == runs->size() ? kOk : kFailed;
}

}  // namespace troupe::app
