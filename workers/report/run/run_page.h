#pragma once

#include <string>

#include "base/result.h"
#include "workers/report/run/ended_run.h"

namespace troupe::workers {

/// Writes RUN/report.html: one page that needs nothing else, made of what the run left. `report`: the closing report.
/// Curves (of metrics.jsonl; where metrics.sinks has none, of this process's time), predictions and videos up to 6 MiB,
/// evaluations, events, plan, and the configuration with what differs from its recipe or preset marked. What is not
/// there has no part. Call last: it shows what the other reports wrote.
/// Errors: those of write_file_durably and read_file, for a file that is there.
Result<void> write_run_page(const EndedRun& run, const std::string& report);

}  // namespace troupe::workers
