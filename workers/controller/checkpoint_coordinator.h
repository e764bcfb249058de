#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "comm/control/messages.h"
#include "workers/controller/effects.h"
#include "workers/controller/run_directory.h"
#include "workers/controller/state_db.h"

namespace troupe {

/// Collects the snapshots of all ranks, has the checkpointer write them, and commits what it wrote: fence check, rename,
/// SQLite, `latest`, pruning (design.md section 6, control-plane.md 15.1). One checkpoint is in flight at a time.
class CheckpointCoordinator {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  struct Options {
    std::int64_t world = 1;
    std::int64_t keep = 3;
    std::chrono::milliseconds timeout{600'000};  ///< of one write, after which the checkpointer is replaced
  };

  CheckpointCoordinator(Options options, RunDirectory run, StateDb& db, ControllerEffects& effects);

  /// The newest committed checkpoint: found on disk at start, advanced by commits.
  std::int64_t committed_step() const { return committed_step_; }
  /// The checkpointer has been asked and has not answered; tick() watches its deadline.
  bool is_writing() const { return pending_ && pending_->sent && !pending_->retry_at; }
  /// Folder of it; empty before the first.
  const std::string& committed_directory() const { return committed_directory_; }
  void resume_from(std::int64_t step, const std::string& directory);

  /// A rank's snapshot lies ready. Snapshots of another fence are ignored.
  /// `void_positions`: what did not count so far; it goes into the checkpoint's ledger.
  void on_snapshot(const SnapshotReady& snapshot, std::uint64_t fence, bool checkpointer_up,
                   const std::set<std::int64_t>& void_positions, TimePoint now);
  /// The checkpointer (re)started: what it owed is asked again.
  void on_checkpointer_up(TimePoint now);
  /// Returns true if a checkpoint was committed by this.
  bool on_done(const CheckpointDone& done, std::uint64_t fence, TimePoint now);
  /// The group is forming again: what is in flight will not be committed.
  void abandon();
  /// Retries a failed write when its pause is over. Returns true if the checkpointer overran its deadline and must be replaced.
  bool tick(TimePoint now);

  struct Totals {
    std::int64_t commits = 0, failures = 0;
    double seconds = 0;
  };
  const Totals& totals() const { return totals_; }

 private:
  struct Pending {
    std::int64_t step = 0;
    std::uint64_t fence = 0;
    std::map<std::int64_t, std::string> handles;  // by rank
    std::int64_t updates = 0;
    int attempts = 0;
    std::optional<TimePoint> retry_at;
    TimePoint begun{};
    bool sent = false;
    std::vector<std::int64_t> void_positions;
    std::string trainer_state;  // of rank 0
  };
  void begin(TimePoint now);
  Result<void> commit(const CheckpointDone& done);
  void give_up(const std::string& why);
  void tell_learners(bool committed);

  const Options options_;
  const RunDirectory run_;
  StateDb& db_;
  ControllerEffects& effects_;
  std::optional<Pending> pending_;
  std::int64_t committed_step_ = 0;
  std::string committed_directory_;
  Totals totals_;
};

}  // namespace troupe
