#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "env/env_spec_json.h"

namespace troupe::workers {

/// Paths of one run, `run_root/NAME/ID/` (docs/run-directory.md lists every file). A value: only create() and
/// make_latest() touch the disk.
class RunDirectory {
 public:
  RunDirectory() = default;
  explicit RunDirectory(std::string root) : root_(std::move(root)) {}

  /// Creates a new run directory and its folders checkpoints, ledger, logs, eval and tb. Their names are durable, and
  /// so are those of the folders above, up to `run_root`.
  /// Errors: failed_precondition naming the path that is in the way (a file where a folder should be),
  /// those of file_error.
  static Result<RunDirectory> create(const std::string& run_root, const std::string& name, const std::string& id);
  /// Points the relative link `run_root/latest` at this run, by rename, durably. Errors: those of create.
  Result<void> make_latest(const std::string& run_root) const;

  const std::string& root() const { return root_; }
  /// The last part of the path.
  std::string id() const;
  /// A path below the run directory; the names below are those of docs/run-directory.md.
  std::string path(const std::string& relative) const { return root_ + "/" + relative; }
  std::string config() const { return path("config.resolved.yaml"); }
  std::string plan() const { return path("plan.json"); }
  std::string env_spec() const { return path(std::string(kEnvSpecFile)); }
  std::string state_db() const { return path("state.db"); }
  std::string endpoint() const { return path("endpoint"); }
  std::string events() const { return path("events.jsonl"); }
  std::string bad_clips() const { return path("bad_clips.jsonl"); }
  std::string quarantine() const { return path("quarantine.jsonl"); }
  std::string checkpoints() const { return path("checkpoints"); }
  std::string ledger() const { return path("ledger"); }
  std::string logs() const { return path("logs"); }
  /// logs/ACTOR.log with - for /: that of "decoder/0" is logs/decoder-0.log.
  std::string log_of(const std::string& actor) const;

 private:
  std::string root_;
};

/// What a user means by RUN: a run directory, `runs/latest`, NAME/ID under `run_root`, or a run's name under it or the
/// folder of that name (its newest run); empty: the link `run_root/latest`. A folder with config.resolved.yaml is a
/// run. Resolves links. Errors: not_found naming what was looked at and the runs in `run_root`, nearest first.
Result<RunDirectory> find_run(const std::string& run, const std::string& run_root);
/// Run directories of `name` under `run_root`, newest first: by id, which begins with the UTC time of its start.
std::vector<RunDirectory> runs_of(const std::string& run_root, const std::string& name);

}  // namespace troupe::workers
