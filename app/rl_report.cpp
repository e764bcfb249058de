#include "app/rl_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include "env/registry/registry.h"
#include "workers/report/loss_plot.h"
#include "workers/report/rl_report.h"

namespace troupe::app {

namespace {

/// A metric over the environment steps that were executed when it was reported.
std::vector<LossPoint> over_env_steps(const RunStatistics& statistics, const std::string& name) {
  std::map<std::int64_t, std::int64_t> executed;
  for (const RunStatistics::Point& p : statistics.curve("env/total_steps"))
    executed[p.step] = static_cast<std::int64_t>(p.value);
  std::vector<LossPoint> points;
  for (const RunStatistics::Point& p : statistics.curve(name))
    points.push_back({.step = executed[p.step], .value = p.value});
  return points;
}

double last_of(const RunStatistics& statistics, const std::string& name) {
  const auto& curve = statistics.curve(name);
  return curve.empty() ? 0 : curve.back().value;
}

Result<void> draw(const RunStatistics& statistics, const JobConfig& job, const std::string& quantity,
                  const std::string& y_title, const std::string& path) {
  std::vector<LossSeries> series;
  auto training = over_env_steps(statistics, "env/" + quantity),
       evaluation = over_env_steps(statistics, "eval/" + quantity);
  if (!training.empty())
    series.push_back({.name = "training episodes", .role = LossRole::train, .points = std::move(training)});
  if (!evaluation.empty())
    series.push_back({.name = "evaluation", .role = LossRole::held_out, .points = std::move(evaluation)});
  if (series.empty()) return {};
  return draw_loss_curves(
      path, series,
      {.title = fmt::format("{}: {}", job.job.name, job.env.id), .x_title = "environment steps", .y_title = y_title});
}

}  // namespace

Result<void> draw_learning_curves(const RunStatistics& statistics, const JobConfig& job, const RunDirectory& run) {
  TROUPE_TRY(draw(statistics, job, "return", "mean return of an episode", run.path("return.png")));
  return draw(statistics, job, "success_once", "episodes with success", run.path("success.png"));
}

void describe_rl_run(RunSummary& summary, const RunStatistics& statistics, const RunDirectory& run) {
  summary.samples = static_cast<std::int64_t>(last_of(statistics, "env/total_steps"));
  summary.sample_noun = "environment steps";
  summary.rate_noun = "env steps";
  summary.measure = "return";
  const auto& returns = statistics.curve("env/return");
  summary.is_measured = !returns.empty();
  if (summary.is_measured) {
    const auto best = std::max_element(returns.begin(), returns.end(),
                                       [](const auto& a, const auto& b) { return a.value < b.value; });
    summary.loss_first = returns.front().value;
    summary.loss_last = returns.back().value;
    summary.loss_best = best->value;
    summary.loss_best_step = best->step;
  }
  const std::string folder = std::filesystem::relative(run.root()).string();
  summary.next = {fmt::format("troupe verify {}", folder), fmt::format("troupe eval {} --episodes 100", folder)};
}

std::string last_evaluation(const RunStatistics& statistics, const JobConfig& job) {
  if (statistics.curve("eval/return").empty()) return {};
  const auto envs = make_env_factory(
      job.env.id, {.profile = job.env.profile, .options = job.env.options, .max_steps = job.env.max_episode_steps});
  if (!envs) return {};
  const EnvSpec& spec = (*envs)->spec();
  const auto episodes = static_cast<std::int64_t>(last_of(statistics, "eval/num_trajectories"));
  EpisodeResults results{.env = spec.id,
                         .episodes = episodes,
                         .max_steps = spec.max_steps,
                         .chunk = job.env.chunk,
                         .successes = {},
                         .mean_return = last_of(statistics, "eval/return"),
                         .std_return = last_of(statistics, "eval/return_std"),
                         .min_return = last_of(statistics, "eval/return_min"),
                         .max_return = last_of(statistics, "eval/return_max"),
                         .mean_length = last_of(statistics, "eval/episode_len")};
  if (spec.has_success)
    results.successes = std::llround(last_of(statistics, "eval/success_once") * static_cast<double>(episodes));
  const bool stated = std::isfinite(spec.reward_threshold);
  return results_table(results, stated ? std::optional<double>(spec.reward_threshold) : std::nullopt);
}

}  // namespace troupe::app
