#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "env/env_options.h"

namespace troupe {

/// What is recorded.
struct RecordingRequest {
  std::string env;              ///< an id of expert_ids()
  EnvOptions env_options{};     ///< profile `state` only
  std::string out;              ///< absent, or an empty folder
  std::int64_t episodes = 200;  ///< that are kept
  std::uint64_t seed = 1;
  bool is_v30 = true;                  ///< LeRobot v3.0; else v2.1
  bool keeps_all = false;              ///< else solved episodes only
  std::vector<std::string> cameras{};  ///< drawn with kDemonstrationSide pixels squared
  /// Called after every episode that was kept.
  std::function<void(std::int64_t kept, std::int64_t of)> progress{};
};

inline constexpr std::int64_t kDemonstrationSide = 128;  ///< pixels
inline constexpr std::int64_t kTriesPerEpisode = 4;      ///< after that many for each episode asked for it is given up

/// What came of it.
struct RecordingReport {
  std::int64_t episodes = 0, tried = 0, solved = 0;  ///< kept; played; of those played
  std::int64_t frames = 0, tasks = 0;
  double fps = 0;
};

/// Lets the environment's expert (env/expert.h) play episodes and writes them as a LeRobot dataset (docs/env.md has its columns):
/// try k begins from demonstration_seed(seed, k), the first `episodes` that are to be kept are written. The folder gets its name
/// when it is whole. Equal requests give the same tables, videos and metadata.
///
/// Errors: not_found (unknown environment, with the nearest; one without expert, with those that have one), invalid_argument
///         (options, cameras), failed_precondition (`out` holds something; too few episodes are solved); those of the environment, with
///         the try; resource_exhausted, unavailable.
Result<RecordingReport> record_demonstrations(const RecordingRequest& request);

}  // namespace troupe
