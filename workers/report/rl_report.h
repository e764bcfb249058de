#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "workers/report/text_report.h"

namespace troupe::workers {

/// One iteration of reinforcement learning as the terminal shows it. Percentages are 0..100; an absent number is not
/// printed.
struct RlProgressLine {
  std::string name{};
  std::int64_t step = 0, total_steps = 0;
  std::int64_t env_steps = 0;
  double env_steps_per_second = 0;
  /// Of the episodes that ended in this iteration.
  std::optional<double> mean_return{}, mean_length{}, success_once{};
  std::optional<double> loss{}, approx_kl{}, entropy{}, alpha{};
  double seconds_per_step = 0, stall_percent = 0;
  /// What sets the pace.
  std::string bottleneck{};
  std::optional<double> remaining_seconds{};
  /// phase_texts(), where they are known.
  std::vector<std::string> phases{};
};

/// Two lines, as progress_text(), and a third with the phases.
std::string rl_progress_text(const RlProgressLine& line, const TextStyle& style = {});

/// Result of one evaluation: k of n episodes succeeded, each seed played once with the deterministic policy, and
/// what the undiscounted returns were.
struct EpisodeResults {
  std::string env{};
  /// `episodes` were played; `lost` more were given up because the environment failed.
  std::int64_t episodes = 0, lost = 0, max_steps = 0, chunk = 1;
  /// At any step; absent where the environment knows no success.
  std::optional<std::int64_t> successes{};
  /// Returns and lengths (control steps) over the episodes.
  double mean_return = 0, std_return = 0, min_return = 0, max_return = 0, mean_length = 0;
  /// The mean return that counts as solved, where the environment states one.
  std::optional<double> threshold{};
};

/// Bounds, both included.
struct Interval {
  double low = 0, high = 1;
};
/// Wilson's score interval of k successes in n trials at 95 %; {0, 1} for n = 0. With p = k / n and z = 1.959964:
///     (p + z^2 / (2n) +- z sqrt(p (1 - p) / n + z^2 / (4 n^2))) / (1 + z^2 / n)
/// Source: Wilson (1927), JASA 22, 209.
Interval wilson_interval(std::int64_t successes, std::int64_t trials);

/// The table that ends an evaluation: what was lost of n, k/n with Wilson's interval, returns, lengths, and whether
/// that counts as solved.
std::string results_table(const EpisodeResults& results);

}  // namespace troupe::workers
