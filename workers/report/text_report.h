#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/namespaces.h"

namespace troupe::workers {

/// How text for people is laid out. The default is what a file or a pipe gets.
struct TextStyle {
  bool color = false;
  /// A terminal that can move its cursor: TERM is not "dumb".
  bool is_terminal = false;
  /// Columns at which lines break between fields; 0: never.
  std::int64_t width = 0;
  /// Rows of the window; 0: not known.
  std::int64_t height = 0;
};

/// The style for an open descriptor: colours and the window's size on a terminal, unless NO_COLOR is set or TERM is
/// "dumb".
TextStyle text_style_of(int fd);

/// One optimizer step as the terminal shows it
/// (docs/metrics.md#progress-line-and-closing-report). Percentages are 0..100: stall is the share
/// of the step spent waiting for data, mfu the share of the device's peak that the model's arithmetic makes.
struct ProgressLine {
  std::string name{};
  std::int64_t step = 0, total_steps = 0;
  double loss = 0;
  /// The loss's parts, where it has two.
  std::optional<double> dynamics_loss{}, action_loss{};
  /// Before clipping; the rate of this step.
  double gradient_norm = 0, learning_rate = 0;
  double samples_per_second = 0, seconds_per_step = 0, stall_percent = 0;
  std::int64_t ranks = 1;
  /// "gpu", or "rank" on CPUs.
  std::string rank_noun = "gpu";
  /// Absent: the device's peak is not known, printed as n/a.
  std::optional<double> mfu_percent{};
  /// On cores, where the step was predicted: seconds, and the share of this machine's measured product rate that was
  /// reached, which stands in the place of MFU.
  std::optional<double> predicted_seconds{}, product_share_percent{};
  std::optional<double> memory_used_gib{}, memory_total_gib{};
  std::optional<double> remaining_seconds{};
};

/// Two lines, each ending in a newline; fields that do not fit into style.width go to further lines with the same
/// indent.
std::string progress_text(const ProgressLine& line, const TextStyle& style = {});

/// Mean squared errors over recorded windows, of the policy and of two that need no model
/// (docs/evaluation.md#what-is-measured).
struct OpenLoopSummary {
  double mse = 0, hold_first_mse = 0, mean_action_mse = 0;
  std::size_t windows = 0, episodes = 0;
};

/// Everything the final lines say. Percentages are 0..100.
struct RunSummary {
  std::string name{};
  std::int64_t steps = 0, samples = 0;
  /// "environment steps", "steps" in reinforcement learning.
  std::string sample_noun = "samples", rate_noun = "smp";
  /// What the loss_ fields hold: "loss", or "return".
  std::string measure = "loss";
  /// False: the loss_ fields hold nothing, as no episode has ended.
  bool is_measured = true;
  double seconds = 0;
  int exit_code = 0;
  /// Means of the first and last ten steps.
  double loss_first = 0, loss_last = 0;
  double loss_best = 0;
  std::int64_t loss_best_step = 0;
  std::int64_t not_finite = 0, void_batches = 0, restarts = 0;
  /// Of steps: mean, median, and the rate that 95 % of them exceed.
  double samples_per_second_mean = 0, samples_per_second_p50 = 0, samples_per_second_p05 = 0;
  std::optional<double> mfu_percent{}, hfu_percent{};
  /// On cores, where steps were predicted: the mean step's seconds, those that were predicted, and the share of this
  /// machine's measured product rate that was reached, which stands in the place of MFU and HFU.
  double seconds_per_step = 0;
  std::optional<double> predicted_seconds{}, product_share_percent{};
  /// Shares of the time, 100 together.
  double compute_percent = 0, exposed_comm_percent = 0, stall_percent = 0, checkpoint_percent = 0, other_percent = 0;
  /// The open-loop evaluation of the last checkpoint, where there was one.
  std::optional<OpenLoopSummary> open_loop{};
  /// One line each; none: "none".
  std::vector<std::string> events{};
  /// Relative to the run directory; empty: nothing was saved.
  std::string checkpoint{};
  std::int64_t checkpoint_bytes = 0;
  bool checkpoint_verified = false;
  /// "step_000400 (eval/success 0.93)": what checkpoint.keep_best has kept; empty: it keeps none.
  std::string best{};
  /// Commands to run now.
  std::vector<std::string> next{};
};

/// Whether a run with this exit code was stopped before its end, by a person (130) or by its scheduler (75).
constexpr bool was_stopped(int exit_code) noexcept { return exit_code == 130 || exit_code == 75; }

/// The lines that end a run. The first words are RUN COMPLETE (exit 0), RUN STOPPED (was_stopped) or RUN FAILED.
std::string run_report(const RunSummary& summary, const TextStyle& style = {});

/// "52s", "3m05s", "3h09m52s", "2d04h31m"; negative and not finite values are "n/a".
std::string duration_text(double seconds);
/// The same of an estimate, where the seconds of hours are noise: "3h09m".
std::string remaining_text(double seconds);

}  // namespace troupe::workers
