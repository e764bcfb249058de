#include "workers/controller/run_lock.h"

#include <fmt/format.h>

#include <filesystem>

#include "base/log.h"

namespace troupe::workers {

namespace {
std::string lock_file(const RunDirectory& run) { return run.path("lock"); }

std::vector<RunDirectory> runs_beside(const RunDirectory& run) {
  const std::filesystem::path runs = std::filesystem::path(run.root()).parent_path();
  return runs_of(runs.parent_path().string(), runs.filename().string());
}
}  // namespace

void remove_session_files(const RunDirectory& run) {
  for (const std::string& file : {run.endpoint(), run.path("token")}) {
    std::error_code error;
    std::filesystem::remove(file, error);  // one that is not there is no error
    if (error) log::warn("{}: cannot be removed: {}", file, error.message());
  }
}

void remove_leftovers(const RunDirectory& run) {
  for (const RunDirectory& other : runs_beside(run)) {
    if (other.id() == run.id() || !std::filesystem::exists(other.endpoint())) continue;
    const auto lock = FileLock::acquire(lock_file(other));
    if (lock) remove_session_files(other);
  }
}

Result<FileLock> lock_to_remove(const RunDirectory& run) { return FileLock::acquire(lock_file(run)); }

Result<FileLock> lock_run(const RunDirectory& run) {
  TROUPE_ASSIGN(FileLock lock, lock_to_remove(run));
  // Whoever starts later sees this lock; of those who start now, each sees the other's.
  for (const RunDirectory& other : runs_beside(run)) {
    if (other.id() >= run.id()) continue;
    if (const auto pid = controller_of(other)) {
      return Error{Errc::failed_precondition,
                   fmt::format("{} has just been started (pid {}); wait for it, or choose another job.name",
                               other.root(), *pid)};
    }
  }
  return lock;
}

std::optional<LiveRun> find_live_run(const std::string& run_root, const std::string& name) {
  for (const RunDirectory& run : runs_of(run_root, name)) {
    if (const auto pid = controller_of(run)) return LiveRun{.run = run, .pid = *pid};
  }
  return std::nullopt;
}

std::optional<pid_t> controller_of(const RunDirectory& run) {
  const auto pid = FileLock::holder(lock_file(run));
  return pid ? *pid : std::nullopt;  // a run whose lock cannot be read is none that this user controls
}

}  // namespace troupe::workers
