#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "workers/data/episode_check.h"
#include "workers/data/state_action.h"

namespace troupe {

/// Statistics of every state and action key of a sample, and what happened on the way.
struct LoadedStatistics {
  KeyStatistics keys;
  std::vector<std::string> computed;     ///< keys for which the tables had to be read: "state.left_arm"
  std::vector<DatasetProblem> warnings;  ///< D12: unusable file, constant dimensions
};

/// Absolute keys: meta/stats.json where it has all six statistics of the column, finite; else one pass over the tables,
/// values rounded to float32 as GEAR does, sums in float64, quantiles exact. Relative action keys:
/// meta/relative_stats_dreamzero.json, else the pool of data.md 2.3 with `horizon` steps. Episodes are those given
/// (training and evaluation alike, as in stats.json). Errors: data_loss when a table that was readable before is not
/// any more.
Result<LoadedStatistics> load_statistics(const EpisodeSource& source, std::span<const Episode> episodes,
                                         std::int64_t horizon);

/// GEAR's experiment metadata: what inference needs to undo the normalisation (data.md 2.4), as JSON text.
std::string experiment_metadata(const EpisodeSource& source, const KeyStatistics& statistics, const std::string& tag,
                                std::int64_t view_height, std::int64_t view_width);

}  // namespace troupe
