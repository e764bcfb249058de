#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace troupe {

/// Paths of one run, `run_root/NAME/ID/` (ux.md 1g; docs/run-directory.md lists every file).
class RunDirectory {
 public:
  RunDirectory() = default;
  explicit RunDirectory(std::string root) : root_(std::move(root)) {}

  /// Creates a new run directory and its sub-folders, and points `run_root/latest` at it.
  /// Errors: failed_precondition naming the path that is in the way (a file where a folder should be), resource_exhausted.
  static Result<RunDirectory> create(const std::string& run_root, const std::string& name, const std::string& id);
  /// Points `run_root/latest` at this run.
  Result<void> make_latest(const std::string& run_root) const;

  const std::string& root() const { return root_; }
  std::string id() const;
  std::string path(const std::string& relative) const { return root_ + "/" + relative; }
  std::string config() const { return path("config.resolved.yaml"); }
  std::string plan() const { return path("plan.json"); }
  std::string state_db() const { return path("state.db"); }
  std::string endpoint() const { return path("endpoint"); }
  std::string events() const { return path("events.jsonl"); }
  std::string bad_clips() const { return path("bad_clips.jsonl"); }
  std::string checkpoints() const { return path("checkpoints"); }
  std::string ledger() const { return path("ledger"); }
  std::string logs() const { return path("logs"); }
  std::string log_of(const std::string& actor) const;

 private:
  std::string root_;
};

/// What a user means by RUN: a run directory, `runs/latest`, or a run's name under `run_root`. Resolves links.
/// Errors: not_found naming what was looked at.
Result<RunDirectory> find_run(const std::string& run, const std::string& run_root);
/// Run directories of `name` under `run_root`, newest first.
std::vector<RunDirectory> runs_of(const std::string& run_root, const std::string& name);

/// Short folder for this user's sockets of one run, mode 0700: $XDG_RUNTIME_DIR or /tmp, because a socket's path is at most
/// 107 bytes. Created if absent; refused if somebody else owns it.
Result<std::string> runtime_directory(const std::string& run_id);

/// Writes a small file by temporary name, fsync and rename.
Result<void> write_file(const std::string& path, const std::string& text, int mode = 0644);
/// Errors: not_found, invalid_argument (a folder), naming the path.
Result<std::string> read_file(const std::string& path);

}  // namespace troupe
