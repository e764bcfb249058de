#pragma once

#include <string>

#include "data/health/health_report.h"

namespace troupe::data {

/// The report for a terminal: what the dataset is, ranges of its columns, findings by code with the first few.
std::string stats_text(const HealthReport& report);

}  // namespace troupe::data
