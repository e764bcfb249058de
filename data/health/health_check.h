#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/progress.h"
#include "base/result.h"
#include "configs/data_config.h"
#include "data/health/health_report.h"
#include "data/lerobot/episode_check.h"

namespace troupe::data {

/// What a dataset is examined for.
struct HealthOptions {
  /// A dataset's folder, or `owner/name` in a local cache (find_dataset).
  std::string data;
  /// The embodiment whose keys, views and rates count; absent: every key and camera of the dataset.
  std::optional<EmbodimentConfig> embodiment;
  /// Action keys whose relative statistics are computed. Empty: those of the embodiment; without an embodiment every
  /// action key that has a state key of the same name and width and whose name lacks "gripper".
  std::vector<std::string> relative_keys;
  /// Steps of relative actions.
  std::int64_t horizon = 24;
  /// Window whose fit D14 tests; the embodiment's macro_stride and video_offsets replace its own.
  WindowConfig window;
  /// Where an index of the dataset may lie; D16 compares the files with it.
  IndexConfig index;
  /// Decode every frame (D13).
  bool decode = false;
  /// Put small images of every camera into the report, and a few episodes up close (make_closeups).
  bool pictures = false;
  /// Threads; 0: one per CPU, at most 16. Changes no result.
  std::int64_t threads = 0;
  /// Bound of the values kept for exact quantiles; beyond it quantiles are found by further passes over the tables.
  std::int64_t memory_bytes = std::int64_t{1} << 30;
  /// Told what is looked at, "episodes", "tables" or "frames", and how many of them are done; from any thread. Tables
  /// are read several times.
  ProgressOfParts progress{};
  /// How a video file is looked at, for tests; empty: probe_video.
  VideoProbe probe;
};

/// Looks at every file of a dataset: metadata, tables, videos, statistics, what the rows do, and with `decode` every
/// frame. A dataset whose metadata cannot be read gives a report with one D01 finding.
///
/// Errors: not_found (no such folder or name), invalid_argument (the embodiment or a relative key does not fit the
///         dataset), data_loss (a table that was readable before is not any more).
Result<HealthReport> check_health(const HealthOptions& options);

}  // namespace troupe::data
