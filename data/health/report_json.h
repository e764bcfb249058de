#pragma once

#include <string>

#include "data/health/health_report.h"

namespace troupe::data {

/// The report as JSON (docs/dataset-stats.md has every field).
std::string report_json(const HealthReport& report);

/// meta/stats.json: {column: {min, max, mean, std, q01, q10, q50, q90, q99}}, each a list over dimensions. `count`:
/// LeRobot v3.0's count too, which GEAR cannot read.
std::string stats_json(const HealthReport& report, bool count);
/// meta/relative_stats_dreamzero.json: {key: six statistics}.
std::string relative_stats_json(const HealthReport& report);
/// meta/relative_horizon_stats_dreamzero.json: {key: {statistic: [[step 0's dimensions], ...]}}.
std::string relative_horizon_stats_json(const HealthReport& report);

}  // namespace troupe::data
