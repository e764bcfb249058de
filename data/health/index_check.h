#pragma once

#include <string>
#include <vector>

#include "configs/data_config.h"
#include "data/health/health_report.h"

namespace troupe::data {

/// D16 warnings: files that are not what an index of this dataset says (FileTimes::is_unchanged). Lists of
/// samples that were made of them are removed, where they may be, so that the next opening makes them anew; entries of
/// other files stay. A dataset without an index has no finding, nor has a damaged index: it is made anew anyway.
void check_index(const std::string& root, const IndexConfig& config, std::vector<HealthFinding>& findings);

}  // namespace troupe::data
