#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/progress.h"
#include "base/result.h"
#include "env/env_options.h"

namespace troupe::workers {

/// Side of recorded frames in pixels unless told otherwise; what DreamZero sees when it plays.
inline constexpr std::int64_t kFrameSide = 128;

/// What is recorded.
struct RecordingRequest {
  /// An id of expert_ids(), or of an environment with an expert of its own (Env::advise).
  std::string env;
  /// Profile `state` only.
  EnvOptions env_options{};
  /// Absent, or an empty folder.
  std::string out;
  /// That are kept.
  std::int64_t episodes = 200;
  std::uint64_t seed = 1;
  /// LeRobot v3.0; else v2.1.
  bool is_v30 = true;
  /// Else solved episodes only.
  bool keeps_all = false;
  std::vector<std::string> cameras{};
  /// Of their frames, pixels: even, 16 to 1024.
  std::int64_t image_size = kFrameSide;
  /// Told of "episodes" that were kept, then what convert_dataset() tells.
  ProgressOfParts progress{};
};

/// After that many for each episode asked for it is given up.
inline constexpr std::int64_t kTriesPerEpisode = 4;

/// What came of it.
struct RecordingReport {
  /// Kept; played; of those played.
  std::int64_t episodes = 0, tried = 0, solved = 0;
  std::int64_t frames = 0, tasks = 0;
  double fps = 0;
};

/// Lets the environment's expert (env/expert.h) play episodes and writes them as a LeRobot dataset
/// (docs/env.md#recording-demonstrations has its columns): try k begins from demonstration_seed(seed,
/// k), the first `episodes` that are to be kept are written. The folder gets its name when it is whole. Equal
/// requests give the same tables, videos and metadata.
///
/// Errors: not_found (unknown environment, with the nearest; one without expert, with those that have one),
/// invalid_argument (options, cameras), failed_precondition (`out` holds something; too few episodes are solved);
/// those of the environment, with the try; resource_exhausted, unavailable.
Result<RecordingReport> record_demonstrations(const RecordingRequest& request);

}  // namespace troupe::workers
