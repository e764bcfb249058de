#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace troupe::workers {

/// A placement and its number: 0 for the first of a run, +1 for each change, also over resumes.
struct PlanRecord {
  std::int64_t revision = 0;
  std::string json;
};

/// A membership epoch: which fence owned training from which step on (table `epoch`). `reason` is for people.
struct EpochRecord {
  std::uint64_t fence = 0;
  std::int64_t resume_step = 0;
  std::string reason;
};

/// A committed checkpoint (table `checkpoint`).
struct CheckpointRecord {
  std::int64_t step = 0;
  std::uint64_t fence = 0;
  /// Relative to the run directory.
  std::string directory;
  /// Digest of its manifest.json, which has the digests of its files.
  std::string manifest_hash;
};

/// The checkpoint that checkpoint.keep_best keeps, and what its evaluation measured (table `best`).
struct BestRecord {
  std::int64_t step = 0;
  /// "eval/return"; values of another are not compared with it.
  std::string metric;
  double value = 0;
};

/// What must survive the controller: one SQLite file `state.db` per run directory, WAL, synchronous=FULL (tables:
/// docs/run-directory.md#statedb). One process writes, the holder of RUN/lock (run_lock.h); any process of this machine
/// may read meanwhile. A change is on disk before its method returns. Thread-safe. Errors of every method:
/// resource_exhausted (disk full), data_loss (damaged), internal.
class StateDb {
 public:
  /// Opens or creates; the caller holds RUN/lock. Errors: failed_precondition (another process keeps it in a write
  /// transaction; a newer schema), data_loss (damaged; names the file), resource_exhausted (disk full).
  static Result<std::unique_ptr<StateDb>> open(const std::string& path);
  /// For `verify`, `status` and `runs`, also of a job that runs: every call sees what is committed then. Where SQLite
  /// cannot make the index of its write-ahead log (read-only folder, full disk), a copy in the temporary folder is
  /// read: the state as of this call.
  static Result<std::unique_ptr<StateDb>> open_read_only(const std::string& path);
  ~StateDb();

  /// Increments and returns the term: once per controller start, before anything is bound.
  Result<std::uint64_t> next_term();
  /// The name of a JobState ("RUNNING").
  Result<void> set_job_state(const std::string& state);
  /// The newest committed step.
  Result<void> set_committed_step(std::int64_t step);
  Result<std::string> job_state() const;
  /// As last said; 0 in a new file.
  Result<std::int64_t> committed_step() const;
  /// A plan as JSON; a known revision is replaced.
  Result<void> add_plan(std::int64_t revision, const std::string& json);
  /// Of the highest revision; nothing in a new file.
  Result<std::optional<PlanRecord>> newest_plan() const;
  Result<void> add_epoch(const EpochRecord& epoch);
  /// In order of fence, which is that of time.
  Result<std::vector<EpochRecord>> epochs() const;
  /// A checkpoint is committed in two places, by a rename on disk and here; so that a crash between the two is seen,
  /// this comes before the rename. A commit that was begun before is replaced.
  Result<void> begin_commit(const CheckpointRecord& checkpoint);
  /// After the rename: adds the checkpoint, sets the committed step and ends the commit, all or nothing.
  Result<void> finish_commit(const CheckpointRecord& checkpoint);
  /// The commit that was begun was taken back.
  Result<void> drop_commit();
  /// The commit that was begun and neither finished nor dropped.
  Result<std::optional<CheckpointRecord>> unfinished_commit() const;
  /// For one that is on disk and not in the table.
  Result<void> add_checkpoint(const CheckpointRecord& checkpoint);
  /// For a checkpoint that was pruned from disk.
  Result<void> remove_checkpoint(std::int64_t step);
  /// In order of step; pruned ones are not there.
  Result<std::vector<CheckpointRecord>> checkpoints() const;
  /// Replaces the one before.
  Result<void> set_best(const BestRecord& best);
  Result<std::optional<BestRecord>> best() const;
  Result<void> drop_best();
  /// The size that `troupe scale` asked for.
  Result<void> set_pool(const std::string& pool, std::int64_t target);
  /// `wall_seconds`: since 1970.
  Result<void> add_event(double wall_seconds, const std::string& kind, const std::string& text);

 private:
  struct Connection;
  explicit StateDb(std::unique_ptr<Connection> connection);
  std::unique_ptr<Connection> db_;
};

}  // namespace troupe::workers
