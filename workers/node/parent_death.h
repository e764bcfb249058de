#pragma once

namespace troupe::workers {

/// Environment variable of a child that holds the process id of its parent: set by ProcessTable and by the bridge's
/// WorkerProcess.
inline constexpr const char* kParentPidVariable = "TROUPE_PARENT_PID";

/// Ties this process to the one that started it: asks the kernel for SIGKILL when the starting thread ends, then checks
/// that the parent is still the one named in TROUPE_PARENT_PID, which closes the race with a parent that died first; if
/// not, ends the process with code 70. Call first thing in main(), before any thread. Does nothing where the variable
/// is not set.
void die_with_parent();

}  // namespace troupe::workers
