#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace troupe::workers {

/// A job made up for a dataset without one, and what was decided, one line each.
struct DatasetJob {
  std::string yaml;
  std::vector<std::string> notes;
};

/// The job that `troupe bench loader FOLDER` measures: up to three cameras of one size on the canvas that takes as
/// many, the whole state and action, DROID's window (4 blocks of 8 frames, 3 rows apart), shortened until half of the
/// episodes are long enough, the tiny model's byte tokenizer, data.image as it is by default. Overrides change
/// everything of it. Errors: those of LerobotDataset::open; failed_precondition (no camera, no state, no action,
/// episodes too short).
Result<DatasetJob> job_of_dataset(const std::string& path);

}  // namespace troupe::workers
