#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "base/file_lock.h"
#include "base/result.h"
#include "workers/checkpoint/run_directory.h"

namespace troupe::workers {

/// Makes this process the only one that controls a run: RUN/lock, with its pid, held until the result is gone or the
/// process has ended, however it ends. Of two runs of one name that start at the same moment, the one with the lower
/// id goes on. Errors: failed_precondition (another process controls this run, or another run of its name; names it),
/// those of FileLock.
Result<FileLock> lock_run(const RunDirectory& run);

/// The same for a process that only removes the run: another one of its name may be under way.
Result<FileLock> lock_to_remove(const RunDirectory& run);

/// Removes what means something only while a controller runs: the address of its control socket and its token. Requires
/// the run's lock.
void remove_session_files(const RunDirectory& run);
/// The same for the other runs of this name whose controller is dead: a killed one could not do it.
void remove_leftovers(const RunDirectory& run);

/// A run that a process controls now.
struct LiveRun {
  RunDirectory run;
  pid_t pid = 0;
};
/// The newest such run of `name` under `run_root`; nothing: none is running.
std::optional<LiveRun> find_live_run(const std::string& run_root, const std::string& name);
/// The process that controls a run; nothing: none does.
std::optional<pid_t> controller_of(const RunDirectory& run);

}  // namespace troupe::workers
