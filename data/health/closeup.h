#pragma once

#include <span>
#include <vector>

#include "data/health/health_report.h"
#include "data/lerobot/episode_check.h"
#include "data/statistics/table_statistics.h"

namespace troupe::data {

/// At most six episodes with a clip of the first camera (at most 160 pixels wide, 300 frames, 400 KiB) and what every
/// state and action column does: those that report.findings name, most findings first, then others spread over the
/// dataset. `tables` reads the episodes of `sound`, those whose tables are sound. What cannot be read is left out; a
/// clip says why.
std::vector<EpisodeCloseup> make_closeups(const LerobotDataset& dataset, const TableSource& tables,
                                          std::span<const Episode> sound, const HealthReport& report);

}  // namespace troupe::data
