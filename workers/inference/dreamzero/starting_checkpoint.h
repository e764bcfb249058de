#pragma once

#include <string>

#include "base/result.h"
#include "configs/job_config.h"

namespace troupe::workers {

/// Whether the DreamZero of a job can go on from the checkpoint in `folder`: a Troupe checkpoint of DreamZero, of the
/// sizes, views, keys and frozen encoders that the job names, and of its adapters where both train some. Reads its
/// manifest alone. Errors: those of read_manifest and checkpoint_kind; invalid_argument, beginning with the key to
/// change; failed_precondition for another kind of checkpoint.
Result<void> check_starting_checkpoint(const JobConfig& job, const std::string& folder);

}  // namespace troupe::workers
