#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "configs/data_config.h"
#include "data/health/health_report.h"
#include "data/lerobot/episode_check.h"

namespace troupe {

/// What a dataset is examined for.
struct HealthOptions {
  std::string data;                            ///< folder, or owner/name in a local cache
  std::optional<EmbodimentConfig> embodiment;  ///< whose keys, views and rates count; absent: everything there is
  std::vector<std::string>
      relative_keys;          ///< empty: the embodiment's; without one every action key that has a state of
                              ///< its name and width and whose name lacks "gripper"
  std::int64_t horizon = 24;  ///< steps of relative actions
  WindowConfig window;        ///< for D14; the embodiment's stride and offsets replace its own
  IndexConfig index;          ///< where an index may be, for D16
  bool decode = false;        ///< decode every picture (D13)
  bool thumbnails = false;
  std::int64_t threads = 0;                           ///< 0: one per CPU, at most 16; changes no result
  std::int64_t memory_bytes = std::int64_t{1} << 30;  ///< values kept for exact quantiles at most
  VideoProbe probe;                                   ///< empty: probe_video
};

/// Looks at every file of a dataset: metadata, tables, videos, statistics, what the rows do, and with `decode` every
/// picture. A dataset whose metadata cannot be read gives a report with one D01 finding.
///
/// Errors: not_found (no such folder or name), invalid_argument (the embodiment or a relative key does not fit the
///         dataset), data_loss (a table that was readable before is not any more).
Result<HealthReport> check_health(const HealthOptions& options);

}  // namespace troupe
