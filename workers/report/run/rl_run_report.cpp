#include "workers/report/run/rl_run_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/shell_word.h"
#include "env/registry/registry.h"
#include "workers/inference/agent/episode_report.h"
#include "workers/inference/agent/episode_runner.h"
#include "workers/inference/agent/episode_video.h"
#include "workers/inference/agent/load_agent.h"
#include "workers/report/loss_plot.h"
#include "workers/report/rl_report.h"

namespace troupe::workers {

namespace {

/// A metric over the environment steps that were executed when it was reported.
std::vector<LossPoint> over_env_steps(const RunStatistics& statistics, const std::string& name) {
  std::map<std::int64_t, double> executed;
  for (const RunCurve::Point& p : statistics.curve("env/total_steps").points()) executed[p.step] = p.value;
  // A long curve is thinned, so the count of a step may lie between those of two others.
  const auto executed_at = [&](std::int64_t step) {
    const auto after = executed.lower_bound(step);
    if (after == executed.end()) return executed.empty() ? 0.0 : executed.rbegin()->second;
    if (after->first == step || after == executed.begin()) return after->first == step ? after->second : 0.0;
    const auto before = std::prev(after);
    const double share = static_cast<double>(step - before->first) / static_cast<double>(after->first - before->first);
    return before->second + share * (after->second - before->second);
  };
  std::vector<LossPoint> points;
  for (const RunCurve::Point& p : statistics.curve(name).points())
    points.push_back({.step = static_cast<std::int64_t>(executed_at(p.step)), .value = p.value});
  return points;
}

double last_of(const RunStatistics& statistics, const std::string& name) {
  const auto& curve = statistics.curve(name).points();
  return curve.empty() ? 0 : curve.back().value;
}

Result<void> draw(const EndedRun& run, const std::string& quantity, const std::string& y_title,
                  const std::string& chart) {
  std::vector<LossSeries> series;
  auto training = over_env_steps(run.statistics(), "env/" + quantity),
       evaluation = over_env_steps(run.statistics(), "eval/" + quantity);
  if (!training.empty())
    series.push_back({.name = "training episodes", .role = LossRole::train, .points = std::move(training)});
  if (!evaluation.empty())
    series.push_back({.name = "evaluation", .role = LossRole::held_out, .points = std::move(evaluation)});
  if (series.empty()) return {};
  return draw_loss_curves(run.directory.path(chart), series,
                          {.title = fmt::format("{}: {}", run.job.job.name, run.job.env.id),
                           .x_title = "environment steps",
                           .y_title = y_title});
}

/// The table of the last evaluation; empty without one, or where nothing says what the environment is.
std::string last_evaluation(const EndedRun& run) {
  const RunStatistics& statistics = run.statistics();
  if (statistics.curve("eval/num_trajectories").points().empty()) return {};
  const auto env = kept_env_spec(run.directory.root(), run.job.env);
  if (!env) return {};
  return results_table(
      episode_results(*env, run.job.env.chunk, [&](const std::string& name) { return last_of(statistics, name); }));
}

/// Names of the videos of the last evaluation's failures, in `folder`. Errors: those of load_agent, run_episodes and
/// write_episode_videos.
Result<std::vector<std::string>> record_failures(const EndedRun& run, const std::string& checkpoint,
                                                 const std::string& folder) {
  const JobConfig& job = run.job;
  if (job.eval.videos == 0 || run.statistics().curve("eval/return").points().empty()) return std::vector<std::string>{};
  // An environment that failed in the evaluator might take this process with it.
  if (last_of(run.statistics(), "eval/lost") > 0) return std::vector<std::string>{};
  const auto& successes = run.statistics().curve("eval/success_once").points();
  if (!successes.empty() && successes.back().value >= 1) return std::vector<std::string>{};
  TROUPE_ASSIGN(LoadedAgent loaded, load_agent(checkpoint));
  loaded.job.env.bridge = job.env.bridge;  // of this machine, which a checkpoint does not say
  if (loaded.agent.spec().cameras.empty()) return std::vector<std::string>{};
  TROUPE_ASSIGN(const auto envs, make_described_env_factory(job.env, loaded.agent.spec(), "the policy's environment"));
  EpisodeOptions options = episode_options(job.eval, job.env);
  options.keep_actions = job.eval.videos;
  TROUPE_ASSIGN(const auto records, run_episodes(loaded.agent, loaded.job, loaded.weights, options));
  return write_episode_videos(envs, records, folder);
}

}  // namespace

Result<void> draw_learning_curves(const EndedRun& run) {
  TROUPE_TRY(draw(run, "return", "mean return of an episode", "return.png"));
  return draw(run, "success_once", "episodes with success", "success.png");
}

void describe_rl_run(const EndedRun& run, RunSummary& summary) {
  const RunStatistics& statistics = run.statistics();
  summary.samples = static_cast<std::int64_t>(last_of(statistics, "env/total_steps"));
  summary.sample_noun = "environment steps";
  summary.rate_noun = "env steps";
  summary.measure = "return";
  const auto& returns = statistics.curve("env/return").points();
  const auto best = statistics.curve("env/return").highest();
  summary.is_measured = best.has_value();
  if (summary.is_measured) {
    summary.loss_first = returns.front().value;
    summary.loss_last = returns.back().value;
    summary.loss_best = best->value;
    summary.loss_best_step = best->step;
  }
  const std::string folder = shell_word(run.folder());
  summary.next = {fmt::format("troupe verify {}", folder)};
  if (run.has_checkpoint()) summary.next.push_back(fmt::format("troupe eval {} --episodes 100", folder));
}

std::string rl_results_text(const EndedRun& run, int exit_code) {
  const std::string text = fmt::format("{}  curve     {}/return.png\n", last_evaluation(run), run.folder());
  if (exit_code != 0 || !run.has_checkpoint()) return text;
  const std::string folder = fmt::format("eval/step_{:06d}/videos", run.service.job().step());
  const auto names =
      record_failures(run, run.service.job().checkpoints().committed_directory(), run.directory.path(folder));
  if (!names) return text + fmt::format("warning: {}\n", names.error().message());
  if (names->empty()) return text;
  return text + fmt::format("  videos    {}/{}: {} episodes\n", run.folder(), folder, names->size());
}

}  // namespace troupe::workers
