#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "data/lerobot/episode_check.h"
#include "data/statistics/state_action.h"
#include "data/statistics/table_statistics.h"

namespace troupe::data {

/// Statistics by name as meta/stats.json and meta/relative_stats_dreamzero.json hold them; a number that is none is a
/// NaN. Empty when the file is absent, and a D12 warning when it cannot be read.
std::map<std::string, FeatureStatistics> read_statistics_file(const std::string& path,
                                                              std::vector<DatasetProblem>& warnings);

/// Statistics of every state and action key of a sample, and what happened on the way.
struct LoadedStatistics {
  KeyStatistics keys;
  /// Keys for which the tables had to be read: "state.left_arm".
  std::vector<std::string> computed;
  /// D12: unusable file, constant dimensions.
  std::vector<DatasetProblem> warnings;
};

/// The tables of usable episodes as table_statistics reads them. `source` and `episodes` outlive it.
TableSource tables_of(const EpisodeSource& source, std::span<const Episode> episodes);

/// Absolute keys: meta/stats.json where it has all six statistics of the column, finite; else exact ones of the
/// tables (table_statistics: sums in float64, memory bounded, every table read once where the values fit). Relative
/// action keys: meta/relative_stats_dreamzero.json, else the pool of WantedRelative with `horizon` steps. Episodes
/// are those given (training and evaluation alike, as in stats.json). Errors: data_loss when a table that was readable
/// before is not any more; invalid_argument when no episode is long enough for a relative key.
Result<LoadedStatistics> load_statistics(const EpisodeSource& source, std::span<const Episode> episodes,
                                         std::int64_t horizon);

/// GEAR's experiment metadata: what inference needs to undo the normalisation, as JSON text in GEAR's layout:
///     {TAG: {"embodiment_tag": TAG, "statistics": {"state": {KEY: {max, min, mean, std, q01, q99}}, "action": ...},
///            "modalities": {"video": {KEY: {"resolution": [W, H], "channels": 3, "fps": ...}}, "state": ..., ...}}}
/// A relative action key carries the statistics of relative actions. View sizes are pixels.
std::string experiment_metadata(const EpisodeSource& source, const KeyStatistics& statistics, const std::string& tag,
                                std::int64_t view_height, std::int64_t view_width);

}  // namespace troupe::data
