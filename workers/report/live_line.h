#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "workers/report/phase_shares.h"
#include "workers/report/text_report.h"

namespace troupe::workers {

/// Where a job stands, on the one line that a terminal repaints.
struct LiveLine {
  std::string name{};
  std::int64_t step = 0, total_steps = 0;
  /// "loss", or "return" with the mean over the last 100 episodes; absent before the first.
  std::string measure = "loss";
  std::optional<double> value{};
  /// Share of episodes with success; absent where the environment knows none.
  std::optional<double> success{};
  /// "smp", "env steps".
  std::string rate_noun = "smp";
  double per_second = 0;
  /// What was predicted of it, where it was.
  std::optional<double> predicted_per_second{};
  /// 0..100, the share of the time spent waiting for data.
  double stall_percent = 0;
  /// What sets the pace, in reinforcement learning.
  std::string bottleneck{};
  /// Not on the line itself.
  std::optional<PhaseShares> phases{};
  std::int64_t restarts = 0;
  std::optional<double> remaining_seconds{};
};

/// "[name] =====>----- step 34/300  loss 0.3712  35.6 smp/s  ETA 3m05s  stall 0.4%  restarts 1", without a newline and
/// never longer than style.width - 3 columns, so that a "^C" typed behind it stays on its row. Where that is too long
/// words and the bottleneck are left out and the name is cut, then the bar goes, then ETA, rate, stall, restarts and
/// value in this order.
/// Width 0: 80 columns.
std::string live_text(const LiveLine& line, const TextStyle& style);

/// How far a command of many equal pieces is.
struct CountedWork {
  /// "stats"; "episodes".
  std::string name{}, unit{};
  /// `of` 0: not known.
  std::int64_t done = 0, of = 0;
  double per_second = 0;
};

/// "[stats] =====>----- 34/300 episodes  12.3/s  ETA 22s", as live_text().
std::string counted_text(const CountedWork& work, const TextStyle& style);

/// The part from the measure on, whole: "loss 0.3712  35.6 smp/s  ETA 3m05s  stall 0.4%  restarts 1".
std::string live_fields(const LiveLine& line);

/// "=====>-----" of `columns` characters for a share of 0..1.
std::string bar_text(double share, std::size_t columns);

}  // namespace troupe::workers
