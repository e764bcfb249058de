#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "configs/job_config.h"
#include "workers/checkpoint/run_directory.h"
#include "workers/report/metric_file.h"

namespace troupe::workers {

/// Episodes that `troupe eval` played with a run's policy.
struct PlayedSeeds {
  /// Environment, and digest of its options: episodes of equal keys and seeds can be compared one by one.
  std::string env{};
  /// Seed of an episode -> undiscounted return.
  std::map<std::int64_t, double> returns{};
  /// Seed -> whether it succeeded; empty where the environment knows no success.
  std::map<std::int64_t, bool> successes{};
};

/// What a run, finished or under way, left for a comparison.
struct ComparedRun {
  RunDirectory directory;
  JobConfig job;
  /// Leaves of the resolved configuration, such as "optimizer.lr" -> "1e-05".
  std::map<std::string, std::string> settings{};
  MetricFile metrics{};
  /// Of the newest eval/*/eval.json: played episodes, or numbers of an open-loop evaluation by name ("mse",
  /// "baselines.hold_first.mse").
  std::optional<PlayedSeeds> episodes{};
  std::map<std::string, double> open_loop{};
};

/// Errors, each with its file: those of read_file; failed_precondition for a run without metrics.jsonl (metrics.sinks
/// lacks jsonl, or no step has ended), a configuration that does not load, and a damaged eval.json.
Result<ComparedRun> read_compared_run(const RunDirectory& directory);

}  // namespace troupe::workers
