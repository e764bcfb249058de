#pragma once

#include <functional>

#include "comm/control/io_loop.h"

namespace troupe {

/// Blocks SIGINT, SIGTERM, SIGHUP and SIGUSR2 in this thread and all it starts, and ignores SIGPIPE. Call before any thread is
/// started (control-plane.md 15.3).
void block_signals();

/// Calls `on_signal` on the loop's thread for each of those signals. The descriptor lives as long as the process.
void watch_signals(IoLoop& loop, std::function<void(int signal)> on_signal);

}  // namespace troupe
