#pragma once

#include <string>

#include "workers/report/metric_file.h"

namespace troupe::workers {

/// The curves of a run as HTML: first those that people ask for (loss, return and success over environment steps,
/// gradient norm, rates, seconds of a step), then, folded away, every other metric with a chart of its own.
std::string metric_charts(const MetricFile& metrics);

}  // namespace troupe::workers
