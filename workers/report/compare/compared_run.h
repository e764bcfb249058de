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

/// Recorded episodes that a run's policy was held against by `troupe eval --open-loop`.
struct HeldAgainst {
  /// Dataset, robot, horizon and windows: episodes of equal keys can be compared one by one.
  std::string windows{};
  /// Number of an episode -> mean squared error over its windows. One with a prediction that is not finite is left out.
  std::map<std::int64_t, double> mse{};
};

/// What a run, finished or under way, left for a comparison.
struct ComparedRun {
  RunDirectory directory;
  JobConfig job;
  /// Leaves of the resolved configuration, such as "optimizer.lr" -> "1e-05". Without cluster.isolation.env where the
  /// job left it to the machine.
  std::map<std::string, std::string> settings{};
  MetricFile metrics{};
  /// Of the newest eval/*/eval.json: played episodes, or numbers of an open-loop evaluation by name ("mse",
  /// "baselines.hold_first.mse") and those of its episodes.
  std::optional<PlayedSeeds> episodes{};
  std::map<std::string, double> open_loop{};
  std::optional<HeldAgainst> held_against{};
};

/// Errors, each with its file: those of read_file; failed_precondition for a run without metrics.jsonl (metrics.sinks
/// lacks jsonl, or no step has ended), a configuration that does not load, and a damaged eval.json.
Result<ComparedRun> read_compared_run(const RunDirectory& directory);

}  // namespace troupe::workers
