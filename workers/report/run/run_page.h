#pragma once

#include <string>

#include "base/result.h"
#include "workers/checkpoint/run_directory.h"
#include "workers/controller/run_statistics.h"

namespace troupe::workers {

/// Writes RUN/report.html: one page that needs nothing else, made of what lies in the run directory: the closing report
/// (report.txt), curves of metrics.jsonl, predictions and videos up to 6 MiB, evaluations, events, plan, and the
/// configuration with what differs from its recipe or preset marked. What is not there has no part. Call after
/// whatever it shows has been written. `statistics`: curves where metrics.sinks has no jsonl.
/// Errors: failed_precondition (a configuration or plan of another version), those of write_file_durably and read_file,
/// for a file that is there.
Result<void> write_run_page(const RunDirectory& run, const RunStatistics* statistics = nullptr);

}  // namespace troupe::workers
