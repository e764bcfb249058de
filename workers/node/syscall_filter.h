#pragma once

#include "workers/node/sandbox.h"

namespace troupe::workers {

/// Whether the kernel runs seccomp filters and this build knows the processor's numbers of system calls.
bool can_filter_syscalls();

/// Installs the filter of enter_sandbox() in this thread and those that it starts, which cannot be undone; requires
/// no_new_privs. 0, or errno. What is refused fails with EPERM; clone3 with ENOSYS, so that the C library takes clone,
/// whose flags a filter can read.
int filter_syscalls(SandboxSockets sockets);

}  // namespace troupe::workers
