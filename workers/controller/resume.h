#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "configs/loader.h"
#include "workers/checkpoint/run_directory.h"

namespace troupe::workers {

/// Where a run starts from.
struct ResumePoint {
  RunDirectory run;
  /// Committed steps of the checkpoint.
  std::int64_t step = 0;
  /// Folder of the checkpoint; empty: initial state.
  std::string checkpoint;
};

/// Decides what `--resume` means (docs/run-directory.md):
/// "": a new run; refused if the newest run of that name is unfinished and has checkpoints.
/// "never": a new run.  "auto": the newest run of that name goes on if it is unfinished or training.steps
/// now says more steps than it was trained to, else a new run.
/// A run that goes on keeps its configuration but for the keys of mutable_on_resume().
/// Whether its data are still those of its checkpoint is for the caller to check (Pipeline::check_fingerprint).
/// Errors: failed_precondition (names the run and what to add), invalid_argument (a changed key that may not),
/// data_loss.
Result<ResumePoint> resolve_resume(const LoadedConfig& config, const std::string& resume);

/// Prefixes of keys that may differ when a run goes on: steps, cluster, metrics, checkpoint, the length of the
/// schedule.
const std::vector<std::string>& mutable_on_resume();

}  // namespace troupe::workers
