#pragma once

#include <sys/types.h>

#include <functional>

#include "comm/control/io_loop.h"

namespace troupe::actors {

/// Blocks SIGINT, SIGTERM, SIGHUP, SIGUSR1 and SIGUSR2 in this thread and all it starts, and ignores SIGPIPE. SIGHUP
/// stays ignored where it is (nohup). Call before any thread is started: a thread that does not block them could be
/// ended by one before watch_signals reads it.
void block_signals();

/// Calls `on_signal` on the loop's thread for each of those signals (signalfd(2), one call a signal); it must not
/// block. The descriptor lives as long as the loop. Where it cannot be made, an error is logged and signals stay
/// blocked.
void watch_signals(IoLoop& loop, std::function<void(int signal)> on_signal);

/// The same for a process that obeys `master` alone: a SIGTERM of any other process is logged and dropped. systemd,
/// Slurm and container runtimes send it to every process of a job; those that would end before their node says so would
/// take the last checkpoint with them.
void watch_signals_of(IoLoop& loop, pid_t master, std::function<void(int signal)> on_signal);

}  // namespace troupe::actors
