#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "env/env_spec.h"
#include "workers/inference/agent/episode_record.h"
#include "workers/report/paired_test.h"
#include "workers/report/rl_report.h"

namespace troupe {

/// What one policy did.
struct PlayedEpisodes {
  std::string checkpoint;  ///< folder, as it was opened
  std::string digest;      ///< XXH3-128 of its manifest.json, which has the digests of all its files
  std::string job;         ///< job.name
  std::int64_t step = 0;   ///< committed steps
  std::string profile;     ///< env.profile
  std::int64_t chunk = 1, exec_steps = 1;
  std::vector<EvaluationEpisode> records;
  std::map<std::int64_t, std::string> videos;  ///< file by seed
};

/// An evaluation: one policy's episodes, or two policies' on the same seeds.
struct EvaluationReport {
  EnvSpec spec;                                ///< of the environment that was played
  std::map<std::string, std::string> options;  ///< env.options
  std::string version;                         ///< of Troupe
  std::int64_t parallel = 1;                   ///< EpisodeOptions::parallel
  PlayedEpisodes first;
  std::optional<PlayedEpisodes> second;
};

/// The numbers of a report's table.
EpisodeResults episode_results(const EnvSpec& spec, const PlayedEpisodes& played);

/// Two policies seed by seed, the first minus the second.
struct EpisodeComparison {
  std::optional<PairedSuccesses> successes;  ///< success_once; with EnvSpec::has_success
  double mcnemar_p = 1;                      ///< with `successes`
  Interval success_difference{};             ///< with `successes`
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

}  // namespace troupe
