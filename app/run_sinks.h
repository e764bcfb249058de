#pragma once

#include <memory>
#include <vector>

#include "base/metrics.h"
#include "base/result.h"
#include "configs/job_config.h"
#include "workers/checkpoint/run_directory.h"

namespace troupe::app {

/// The files of a run directory that `metrics.sinks` names. Errors: those of the files.
Result<std::vector<std::unique_ptr<MetricSink>>> open_sinks(const JobConfig& job, const RunDirectory& run);

}  // namespace troupe::app
