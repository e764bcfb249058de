#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "configs/job_config.h"
#include "workers/controller/run_statistics.h"

namespace troupe::app {

/// Writes videos of the failures of a run's last evaluation (eval.videos of them) from its last checkpoint into
/// `folder`: the episodes are played again, with the same bits. Returns the files' names; none where nothing failed,
/// the environment has no camera or eval.videos is 0. Takes as long as an evaluation. Errors: those of load_agent,
/// run_episodes and write_episode_videos.
Result<std::vector<std::string>> record_last_evaluation(const JobConfig& job, const RunStatistics& statistics,
                                                        const std::string& checkpoint, const std::string& folder);

}  // namespace troupe::app
