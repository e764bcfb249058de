#include "workers/controller/progress_reporter.h"

#include <fmt/format.h>

#include <optional>

#include "placement/rl_shape.h"
#include "workers/report/rl_report.h"
#include "workers/report/text_report.h"

namespace troupe::workers {

namespace {

using Metrics = std::map<std::string, double>;

std::optional<double> find_metric(const Metrics& metrics, const char* name) {
  const auto found = metrics.find(name);
  return found == metrics.end() ? std::nullopt : std::optional(found->second);
}

double value_of(const Metrics& metrics, const char* name) { return find_metric(metrics, name).value_or(0.0); }

/// A metric over the episodes of the newest iterations, as many as have 100 between them, at most RunCurve::kRecent;
/// absent before the first.
std::optional<double> over_last_episodes(const RunStatistics& statistics, const std::string& metric) {
  constexpr double kEpisodes = 100;
  const auto& values = statistics.curve(metric).recent();
  const auto& counts = statistics.curve("env/num_trajectories").recent();
  double sum = 0, episodes = 0;
  for (auto value = values.rbegin(), count = counts.rbegin(); value != values.rend() && episodes < kEpisodes;
       ++value, ++count) {
    // Iterations in which no episode ended have a count and no value.
    while (count != counts.rend() && count->step > value->step) ++count;
    if (count == counts.rend()) break;
    sum += count->value * value->value;
    episodes += count->value;
  }
  return episodes > 0 ? std::optional(sum / episodes) : std::nullopt;
}

/// The printer ends the line.
std::string without_last_newline(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

/// That of the phases; before any are known "update" while stalls are below half of the time, else "rollouts".
std::string bottleneck_text(const RunStatistics& statistics, const std::optional<PhaseShares>& phases) {
  if (phases) return std::string(enum_name(bottleneck_of(*phases)));
  return statistics.stall_percent() < 50 ? "update" : "rollouts";
}

class SftProgress final : public ProgressReporter {
 public:
  SftProgress(const JobConfig& job, const BatchPlan& batch, const std::optional<StepExpectation>& expected)
      : job_(job), batch_(batch), expected_(expected) {}

  std::int64_t samples_per_step() const override { return batch_.global; }
  std::string samples_metric() const override { return {}; }
  std::string idle_metric(const std::string&) const override { return "data/producer_idle"; }
  std::string step(const StepReport& report, const RunStatistics& statistics,
                   const std::optional<PhaseShares>&) const override {
    const Metrics& m = report.metrics;
    const std::int64_t total = job_.training.steps;
    const double rate = statistics.samples_per_second();
    ProgressLine line{.name = job_.job.name,
                      .step = report.step,
                      .total_steps = total,
                      .loss = value_of(m, "train/loss"),
                      .dynamics_loss = find_metric(m, "train/dynamics_loss"),
                      .action_loss = find_metric(m, "train/action_loss"),
                      .gradient_norm = value_of(m, "train/grad_norm"),
                      .learning_rate = value_of(m, "train/lr"),
                      .samples_per_second = rate,
                      .seconds_per_step = value_of(m, "time/step"),
                      .stall_percent = statistics.stall_percent(),
                      .ranks = batch_.data_ranks,
                      .rank_noun = "rank"};
    if (rate > 0) line.remaining_seconds = static_cast<double>((total - report.step) * batch_.global) / rate;
    if (expected_) {
      line.predicted_seconds = expected_->seconds;
      line.product_share_percent = expected_->product_share_percent(line.seconds_per_step);
    }
    return without_last_newline(progress_text(line));
  }
  LiveLine live(const StepReport& report, const RunStatistics& statistics,
                const std::optional<PhaseShares>&) const override {
    const std::int64_t total = job_.training.steps;
    const double rate = statistics.samples_per_second();
    LiveLine line{.name = job_.job.name,
                  .step = report.step,
                  .total_steps = total,
                  .value = find_metric(report.metrics, "train/loss"),
                  .per_second = rate,
                  .stall_percent = statistics.stall_percent()};
    if (rate > 0) line.remaining_seconds = static_cast<double>((total - report.step) * batch_.global) / rate;
    if (expected_) line.predicted_per_second = static_cast<double>(batch_.global) / expected_->seconds;
    return line;
  }
  std::string evaluation(const EvalReport& report) const override {
    const Metrics& m = report.metrics;
    const std::string parts = find_metric(m, "eval/dynamics_loss")
                                  ? fmt::format(" (dyn {:.4f} act {:.4f})", value_of(m, "eval/dynamics_loss"),
                                                value_of(m, "eval/action_loss"))
                                  : std::string();
    return fmt::format("[{}] step {} held-out loss {:.4f}{} on {:.0f} samples", job_.job.name, report.step,
                       value_of(m, "eval/loss"), parts, value_of(m, "eval/samples"));
  }

 private:
  const JobConfig& job_;
  const BatchPlan batch_;
  const std::optional<StepExpectation> expected_;
};

class RlProgress final : public ProgressReporter {
 public:
  explicit RlProgress(const JobConfig& job) : job_(job) {}

  std::int64_t samples_per_step() const override { return rl_shape(job_).env_steps_per_step(); }
  std::string samples_metric() const override { return "env/steps"; }
  std::string idle_metric(const std::string& role) const override { return fmt::format("time/{}/idle", role); }
  std::string step(const StepReport& report, const RunStatistics& statistics,
                   const std::optional<PhaseShares>& phases) const override {
    const Metrics& m = report.metrics;
    const std::int64_t total = job_.training.steps;
    RlProgressLine line{.name = job_.job.name,
                        .step = report.step,
                        .total_steps = total,
                        .env_steps = static_cast<std::int64_t>(value_of(m, "env/total_steps")),
                        .env_steps_per_second = statistics.samples_per_second(),
                        .mean_return = find_metric(m, "env/return"),
                        .mean_length = find_metric(m, "env/episode_len"),
                        .success_once = find_metric(m, "env/success_once"),
                        .loss = find_metric(m, "train/loss"),
                        .approx_kl = find_metric(m, "train/actor/approx_kl"),
                        .entropy = find_metric(m, "train/actor/entropy_loss"),
                        .alpha = find_metric(m, "train/sac/alpha"),
                        .seconds_per_step = value_of(m, "time/step"),
                        .stall_percent = statistics.stall_percent(),
                        .bottleneck = bottleneck_text(statistics, phases),
                        .remaining_seconds = statistics.seconds_per_step() * static_cast<double>(total - report.step)};
    if (phases) line.phases = phase_texts(*phases);
    return without_last_newline(rl_progress_text(line));
  }
  LiveLine live(const StepReport& report, const RunStatistics& statistics,
                const std::optional<PhaseShares>& phases) const override {
    const std::int64_t total = job_.training.steps;
    return {.name = job_.job.name,
            .step = report.step,
            .total_steps = total,
            .measure = "return",
            .value = over_last_episodes(statistics, "env/return"),
            .success = over_last_episodes(statistics, "env/success_once"),
            .rate_noun = "env steps",
            .per_second = statistics.samples_per_second(),
            .stall_percent = statistics.stall_percent(),
            .bottleneck = bottleneck_text(statistics, phases),
            .phases = phases,
            .remaining_seconds = statistics.seconds_per_step() * static_cast<double>(total - report.step)};
  }
  std::string evaluation(const EvalReport& report) const override {
    const Metrics& m = report.metrics;
    const double played = value_of(m, "eval/num_trajectories"), lost = value_of(m, "eval/lost");
    std::string text = fmt::format("[{}] iteration {}: evaluation of ", job_.job.name, report.step);
    if (played == 0) return text + fmt::format("{:.0f} episodes: all lost", lost);
    text += lost > 0 ? fmt::format("{:.0f} of {:.0f} episodes, {:.0f} lost", played, played + lost, lost)
                     : fmt::format("{:.0f} episodes", played);
    const auto success = find_metric(m, "eval/success_once");
    return text + fmt::format(": return {:.4g}, length {:.1f}{}", value_of(m, "eval/return"),
                              value_of(m, "eval/episode_len"),
                              success ? fmt::format(", success {:.1f}%", 100 * *success) : "");
  }

 private:
  const JobConfig& job_;
};

}  // namespace

std::unique_ptr<const ProgressReporter> ProgressReporter::make(const JobConfig& job, const Plan& plan,
                                                               const std::optional<StepExpectation>& expected) {
  if (job.job.kind == JobKind::rl) return std::make_unique<RlProgress>(job);
  return std::make_unique<SftProgress>(job, plan.batch, expected);
}

}  // namespace troupe::workers
