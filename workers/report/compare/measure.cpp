#include "workers/report/compare/measure.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "env/registry/registry.h"

namespace troupe::workers {

namespace {

using Value = std::optional<double>;

constexpr const char* kEpisodesEnded = "env/num_trajectories";

Value last_of(const ComparedRun& run, const std::string& metric) {
  const auto found = run.metrics.curves.find(metric);
  if (found == run.metrics.curves.end() || found->second.empty()) return std::nullopt;
  return found->second.rbegin()->second;
}

/// Mean over the last tenth of the optimizer steps; each value weighs what `weight` was at its step, 1 without one.
Value last_tenth(const ComparedRun& run, const std::string& metric, const std::string& weight = {}) {
  const auto found = run.metrics.curves.find(metric);
  if (found == run.metrics.curves.end() || found->second.empty()) return std::nullopt;
  const auto weights = run.metrics.curves.find(weight);
  const double begin = 0.9 * static_cast<double>(run.metrics.walls.empty() ? found->second.rbegin()->first
                                                                           : run.metrics.walls.rbegin()->first);
  double sum = 0, total = 0;
  for (const auto& [step, value] : found->second) {
    if (static_cast<double>(step) <= begin) continue;
    double w = 1;
    if (weights != run.metrics.curves.end()) {
      const auto at = weights->second.find(step);
      if (at != weights->second.end()) w = at->second;
    }
    sum += w * value;
    total += w;
  }
  return total > 0 ? Value(sum / total) : std::nullopt;
}

Value evaluated_return(const ComparedRun& run) {
  if (!run.episodes || run.episodes->returns.empty()) return last_of(run, "eval/return");
  double sum = 0;
  for (const auto& [seed, value] : run.episodes->returns) sum += value;
  return sum / static_cast<double>(run.episodes->returns.size());
}

Value evaluated_success(const ComparedRun& run) {
  if (!run.episodes || run.episodes->successes.empty()) return last_of(run, "eval/success_once");
  double sum = 0;
  for (const auto& [seed, succeeded] : run.episodes->successes) sum += succeeded ? 1 : 0;
  return sum / static_cast<double>(run.episodes->successes.size());
}

/// The environment's threshold; NaN where it states none or nothing says what it is.
double threshold_of(const ComparedRun& run) {
  const auto env = kept_env_spec(run.directory.root(), run.job.env);
  return env ? env->reward_threshold : std::nan("");
}

/// The first environment steps at which the return is above the threshold and still is at the next record.
Value steps_to_threshold(const ComparedRun& run) {
  if (run.job.job.kind != JobKind::rl) return std::nullopt;
  const double threshold = threshold_of(run);
  if (!std::isfinite(threshold)) return std::nullopt;
  MetricCurve curve = metric_curve(run.metrics, "eval/return", true);
  if (curve.x.size() < 2) curve = metric_curve(run.metrics, "env/return", true);
  for (std::size_t i = 0; i < curve.x.size(); ++i) {
    if (curve.y[i] > threshold && curve.y[std::min(i + 1, curve.y.size() - 1)] > threshold) return curve.x[i];
  }
  return std::nullopt;
}

Value open_loop(const ComparedRun& run, const std::string& name) {
  const auto found = run.open_loop.find(name);
  return found == run.open_loop.end() ? Value() : Value(found->second);
}

Value wall_seconds(const ComparedRun& run) {
  const auto& walls = run.metrics.walls;
  if (walls.empty()) return std::nullopt;
  const auto first_step = run.metrics.curves.find("time/step");
  const double before = first_step == run.metrics.curves.end() ? 0 : first_step->second.begin()->second;
  return walls.rbegin()->second - walls.begin()->second + before;
}

Value steps(const ComparedRun& run) {
  if (run.metrics.walls.empty()) return std::nullopt;
  return static_cast<double>(run.metrics.walls.rbegin()->first);
}

}  // namespace

std::vector<Measure> measures_of(const std::vector<const ComparedRun*>& runs) {
  struct Rule {
    const char* name;
    MeasureKind kind;
    std::function<Value(const ComparedRun&)> value;
  };
  using enum MeasureKind;
  const std::vector<Rule> rules{
      {"evaluation: return", outcome, evaluated_return},
      {"evaluation: success", outcome, evaluated_success},
      {"training: return", outcome, [](const auto& run) { return last_tenth(run, "env/return", kEpisodesEnded); }},
      {"training: success", outcome,
       [](const auto& run) { return last_tenth(run, "env/success_once", kEpisodesEnded); }},
      {"held-out loss", outcome, [](const auto& run) { return last_of(run, "eval/loss"); }},
      {"training loss", outcome, [](const auto& run) { return last_tenth(run, "train/loss"); }},
      {"open-loop mse", outcome, [](const auto& run) { return open_loop(run, "mse"); }},
      {"mse of holding still", reference, [](const auto& run) { return open_loop(run, "baselines.hold_first.mse"); }},
      {"environment steps to threshold", cost, steps_to_threshold},
      {"environment steps", cost, [](const auto& run) { return last_of(run, kEnvSteps); }},
      {"steps", cost, steps},
      {"wall seconds", cost, wall_seconds}};
  std::vector<Measure> measures;
  for (const Rule& rule : rules) {
    Measure measure{.name = rule.name, .kind = rule.kind};
    for (const ComparedRun* run : runs) measure.values.push_back(rule.value(*run));
    const bool is_there =
        std::any_of(measure.values.begin(), measure.values.end(), [](const Value& v) { return v.has_value(); });
    if (is_there) measures.push_back(std::move(measure));
  }
  return measures;
}

}  // namespace troupe::workers
