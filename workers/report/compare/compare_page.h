#pragma once

#include <string>
#include <vector>

#include "workers/report/compare/run_group.h"

namespace troupe::workers {

/// Groups on one page that needs nothing else: their table with intervals, the paired tests, a chart of every metric
/// with one curve a group and its seeds as a band, the settings that differ, and every run.
std::string compare_page(const std::string& title, const std::vector<RunGroup>& groups);

}  // namespace troupe::workers
