#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "env/env_spec.h"
#include "workers/inference/agent/episode_record.h"
#include "workers/inference/policy/policy_options.h"
#include "workers/report/paired_test.h"
#include "workers/report/rl_report.h"

namespace troupe::workers {

/// What one policy did: the checkpoint that it is of, and every episode it played, in order of seed.
struct PlayedEpisodes {
  /// Folder, as it was opened.
  std::string checkpoint;
  /// XXH3-128 of its manifest.json, which has the digests of all its files.
  std::string digest;
  /// `job.name`.
  std::string job;
  /// Committed steps.
  std::int64_t step = 0;
  /// `env.profile`.
  std::string profile;
  /// Actions of one policy call, and how many of them are executed before the next call (env.chunk, env.exec_steps).
  std::int64_t chunk = 1, exec_steps = 1;
  /// How DreamZero denoised; of other policies nothing.
  std::map<std::string, OptionValue> options = {};
  std::vector<EvaluationEpisode> records;
  /// Name of the video file by seed.
  std::map<std::int64_t, std::string> videos;
};

/// An evaluation: one policy's episodes, or two policies' on the same seeds.
struct EvaluationReport {
  /// Of the environment that was played.
  EnvSpec spec;
  /// `env.options`.
  std::map<std::string, std::string> options;
  /// Version of Troupe.
  std::string version;
  /// EpisodeOptions::parallel of the run.
  std::int64_t parallel = 1;
  /// `second`: only with --compare, on the same seeds in the same order.
  PlayedEpisodes first;
  std::optional<PlayedEpisodes> second;
};

/// The numbers of a report's table; `metric` gives those of evaluation_metrics by name.
EpisodeResults episode_results(const EnvSpec& spec, std::int64_t chunk,
                               const std::function<double(const std::string&)>& metric);

/// Two policies seed by seed, the first minus the second.
struct EpisodeComparison {
  /// Seeds that both played; those that either lost are left out.
  std::int64_t pairs = 0;
  /// Counts of success_once, seed by seed; only with EnvSpec::has_success.
  std::optional<PairedSuccesses> successes;
  /// With `successes`
  double mcnemar_p = 1;
  /// With `successes`
  Interval success_difference{};
  /// Wilcoxon's signed-rank test of the differences of returns, and Student's interval of their mean
  /// (docs/evaluation.md).
  SignedRankTest returns;
  MeanInterval return_difference;
};
/// Both have the same seeds in the same order.
EpisodeComparison compare_episodes(const EnvSpec& spec, const std::vector<EvaluationEpisode>& first,
                                   const std::vector<EvaluationEpisode>& second);

/// For the terminal: results_table, for two policies twice, and then what compares them.
std::string episodes_table(const EvaluationReport& report);
/// results.md: the same, and the seeds that failed.
std::string episodes_markdown(const EvaluationReport& report);
/// eval.json (docs/evaluation.md): the same checkpoints and options give the same bytes.
std::string episodes_json(const EvaluationReport& report);

}  // namespace troupe::workers
