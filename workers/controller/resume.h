#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "configs/loader.h"
#include "workers/checkpoint/run_directory.h"

namespace troupe::workers {

/// Where a job starts from.
struct ResumePoint {
  /// The run that goes on; nothing: a new one, which the caller makes.
  std::optional<RunDirectory> run = {};
  /// Committed steps of the checkpoint.
  std::int64_t step = 0;
  /// Folder of the checkpoint; empty: initial state. What its rank files hold is compared by the ranks that read it;
  /// where it is damaged, the job goes back (CheckpointCoordinator::go_back).
  std::string checkpoint = {};
  /// As its ledger.json has them: positions that did not count, and those of them whose sample could not be made.
  std::vector<std::int64_t> void_positions = {}, bad_positions = {};
  /// The run has ended in order after training.steps or more: nothing is left to train.
  bool is_complete = false;
  /// The model of the run that goes on, as it was recorded: where its weights and frozen parts came from is not asked
  /// again.
  ModelConfig model = {};
  /// How the run that goes on has stepped environments: cluster.isolation.env as it was recorded, process where it was
  /// not.
  std::string env_isolation = {};
};

/// Decides what `--resume` means (docs/run-directory.md#resume). Makes nothing.
/// "": a new run; refused if the newest run of that name is unfinished and has checkpoints.
/// "never": a new run.  "auto": the newest run of that name; a new one where there is none.
/// Anything else: that run, as find_run() takes it.
/// A run that goes on keeps its configuration but for the keys of mutable_on_resume(); model.init and the tokenizer,
/// which are recorded resolved, are not compared.
/// Whether its data are still those of its checkpoint is for the caller to check (Pipeline::check_fingerprint).
/// Errors: failed_precondition (names the run and what to add), invalid_argument (a changed key that may not),
/// not_found (no such run), data_loss.
Result<ResumePoint> resolve_resume(const LoadedConfig& config, const std::string& resume);

/// Prefixes of keys that may differ when a run goes on: steps, cluster, metrics, checkpoint, the average of
/// the weights, how moments are kept, the length of the schedule, deadlines, what becomes of bad samples, and where
/// datasets lie. "[]" stands for any index.
const std::vector<std::string>& mutable_on_resume();

}  // namespace troupe::workers
