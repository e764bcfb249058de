#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/trace.h"

namespace troupe::workers {

/// The spans of a job's processes as a trace for ui.perfetto.dev and chrome://tracing (JSON of the Trace Event Format:
/// complete events, times in microseconds from the first span). A process or thread is a track under its name.
std::string chrome_trace(const std::vector<ProcessSpans>& processes);

/// The longest waits, a line each with seconds, process, thread and when it began; of waits inside one another the
/// outermost. At most `most`. Ends with how many spans were dropped, if any were.
std::string longest_waits(const std::vector<ProcessSpans>& processes, std::size_t most);

}  // namespace troupe::workers
