#pragma once

#include <span>

#include "base/result.h"
#include "data/health/health_check.h"
#include "data/lerobot/episode_check.h"
#include "data/statistics/table_statistics.h"

namespace troupe::data {

/// Exact statistics of every float column of info.json and of the relative keys over the episodes given, into
/// report.columns and report.relative; D12 findings: constant dimensions, statistics files that lack something,
/// cannot be used, or say something else than the tables; D04 warnings: columns that no sample uses and that cannot
/// be read.
/// Errors: as table_statistics. Uses options.threads threads and options.memory_bytes of memory for values.
Result<void> compute_statistics(const EpisodeSource& source, std::span<const Episode> episodes,
                                const HealthOptions& options, HealthReport& report);

}  // namespace troupe::data
