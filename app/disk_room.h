#pragma once

#include <optional>
#include <vector>

#include "base/result.h"
#include "configs/job_config.h"
#include "placement/plan.h"
#include "workers/checkpoint/run_directory.h"

namespace troupe::app {

/// Too little room on a disk.
struct RoomFinding {
  /// Begins with the key of the folder.
  Error error;
  /// There is enough to begin and for one checkpoint.
  bool is_warning = false;
};

/// Whether the disks of job.run_root and offload.folder have room for what the job writes there beside logs:
/// checkpoints (checkpoint.keep, the best and the one that is being written; those of `run`, which goes on, lie there
/// already), the frozen base, ranks' files for offload, and the replay log at its largest. Errors within:
/// resource_exhausted, those of file_error.
std::vector<RoomFinding> look_at_room(const JobConfig& job, const std::optional<RunDirectory>& run, const Plan& plan);

}  // namespace troupe::app
