#pragma once

// Internal to data/convert: what the files of the sources hold, as far as the plan needs it.
#include <string>
#include <vector>

#include "base/result.h"
#include "data/convert/plan.h"

namespace troupe {

/// An episode with the facts of its files, or why it cannot be read.
struct ScannedEpisode {
  PlannedEpisode episode;
  std::string files_hash;                ///< digest of its files' identities
  std::vector<DatasetProblem> problems;  ///< not empty: the episode is left out
};

/// Scans every episode of every source, in order, on `threads` threads.
Result<std::vector<ScannedEpisode>> scan_episodes(std::vector<DatasetSource>& sources, std::size_t threads);

}  // namespace troupe
