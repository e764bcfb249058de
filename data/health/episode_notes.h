#pragma once

#include "data/health/health_report.h"

namespace troupe::data {

/// Appends notes to report.findings, from report.episodes alone:
///     H01  an episode has the states and actions of an earlier one (equal EpisodeReport::content)
///     H02  more than half of an episode's table rows are idle
///     H03  outliers: one note for the dataset, naming the episode with most
///     H04  jumps: the same
void note_episodes(HealthReport& report);

}  // namespace troupe::data
