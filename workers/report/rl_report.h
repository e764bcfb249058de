#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "workers/report/text_report.h"

namespace troupe {

/// One iteration of reinforcement learning as the terminal shows it. Percentages are 0..100; an absent number is not printed.
struct RlProgressLine {
  std::string name{};
  std::int64_t step = 0, total_steps = 0;
  std::int64_t env_steps = 0;
  double env_steps_per_second = 0;
  std::optional<double> mean_return{}, mean_length{}, success_once{};  ///< of the episodes that ended in this iteration
  std::optional<double> loss{}, approx_kl{}, entropy{}, alpha{};
  double seconds_per_step = 0, stall_percent = 0;
  std::string bottleneck{};  ///< role that sets the pace
  std::optional<double> remaining_seconds{};
};

/// Two lines, as progress_text().
std::string rl_progress_text(const RlProgressLine& line, const TextStyle& style = {});

/// Result of one evaluation (rl.md 16): k of n episodes succeeded, and what the returns were.
struct EpisodeResults {
  std::string env{};
  std::int64_t episodes = 0, max_steps = 0, chunk = 1;
  std::optional<std::int64_t> successes{};  ///< at any step; absent where the environment knows no success
  double mean_return = 0, std_return = 0, min_return = 0, max_return = 0, mean_length = 0;
  double seconds = 0;
};

/// Wilson's score interval of k successes in n trials at 95 %. {0, 1} for n = 0. Source: Wilson (1927), JASA 22, eq. for the
/// binomial proportion, z = 1.959964.
struct Interval {
  double low = 0, high = 1;
};
Interval wilson_interval(std::int64_t successes, std::int64_t trials);

/// The table that ends an evaluation; `threshold` is the mean return that counts as solved.
std::string results_table(const EpisodeResults& results, std::optional<double> threshold);

}  // namespace troupe
