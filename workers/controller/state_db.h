#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace troupe {

/// A membership epoch: which fence owned training from which step on.
struct EpochRecord {
  std::uint64_t fence = 0;
  std::int64_t resume_step = 0;
  std::string reason;
};

/// A committed checkpoint.
struct CheckpointRecord {
  std::int64_t step = 0;
  std::uint64_t fence = 0;
  std::string directory;  ///< relative to the run directory
  std::string manifest_hash;
};

/// What must survive the controller: one SQLite file `state.db` per run directory, WAL, synchronous=FULL, opened exclusively so
/// that a second controller is refused (control-plane.md 6; docs/run-directory.md lists the tables). A change is on disk before
/// its method returns. Not thread-safe.
class StateDb {
 public:
  /// Opens or creates. Errors: failed_precondition (another controller holds it; a newer schema), data_loss (damaged; names
  /// the file), resource_exhausted (disk full).
  static Result<std::unique_ptr<StateDb>> open(const std::string& path);
  /// For `verify` and `status` of a finished run: no lock is taken, nothing is written.
  static Result<std::unique_ptr<StateDb>> open_read_only(const std::string& path);
  ~StateDb();

  /// Increments and returns the term: once per controller start, before anything is bound.
  Result<std::uint64_t> next_term();
  Result<void> set_job(const std::string& state, std::int64_t committed_step);
  Result<std::string> job_state() const;
  Result<std::int64_t> committed_step() const;
  Result<void> add_plan(std::int64_t revision, const std::string& json);
  Result<std::optional<std::string>> newest_plan() const;
  Result<void> add_epoch(const EpochRecord& epoch);
  Result<std::vector<EpochRecord>> epochs() const;
  Result<void> add_checkpoint(const CheckpointRecord& checkpoint);
  Result<void> remove_checkpoint(std::int64_t step);
  Result<std::vector<CheckpointRecord>> checkpoints() const;
  Result<void> set_pool(const std::string& pool, std::int64_t target);
  Result<void> add_event(double wall_seconds, const std::string& kind, const std::string& text);

 private:
  struct Connection;
  explicit StateDb(std::unique_ptr<Connection> connection);
  std::unique_ptr<Connection> db_;
};

}  // namespace troupe
