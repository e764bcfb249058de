#pragma once

#include <map>
#include <string>
#include <vector>

#include "workers/report/compare/compared_run.h"

namespace troupe::workers {

/// Runs of one configuration that differ by nothing but their seed.
struct RunGroup {
  /// Name of their jobs without "-seedN"; where another group has the same one, the settings that differ behind it.
  std::string label{};
  /// In ascending order of job.seed.
  std::vector<ComparedRun> runs{};
  /// Values, in this group, of the keys that are not equal in all groups; a key that a group lacks is "-".
  std::map<std::string, std::string> differing{};
};

/// Groups in the order in which their first run is given. job.seed, job.name and job.run_root tell no groups apart.
std::vector<RunGroup> group_runs(std::vector<ComparedRun> runs);

}  // namespace troupe::workers
