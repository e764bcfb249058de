#pragma once

#include "data/health/health_report.h"

namespace troupe {

/// H01 to H04: what the episodes' measurements say, appended to report.findings as notes.
void note_episodes(HealthReport& report);

}  // namespace troupe
