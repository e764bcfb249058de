#pragma once

#include <atomic>

#include "base/namespaces.h"

namespace troupe::app {

/// For commands that work in this process alone: from the first call on, the first SIGINT or SIGTERM sets the flag
/// and the second one ends the process. The command looks at the flag between two pieces of work. Any thread may read
/// it; it lives as long as the process.
const std::atomic<bool>& interrupt_flag();

}  // namespace troupe::app
