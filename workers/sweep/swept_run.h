#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace troupe::workers {

/// One run of a sweep.
struct SweptRun {
  /// NAME-seed3-lr0.001: `job.name`, the seed, and the value of every key that has several, behind the key's last word.
  std::string name{};
  std::int64_t seed = 0;
  /// Of the job, job.name and job.seed among them.
  std::vector<std::string> overrides{};
};

/// Every seed with every combination of values, seeds last to change: the runs of one seed come together, so that what
/// is ended early is still a fair comparison. `job_name` is that of the job without the sweep. `overrides`: as they are
/// typed; "a.b=c,d" has several values, all others go to every run. `seeds`: "0..4", "1,4,7".
/// Errors, invalid_argument: no seed, one twice, a name of more than 64 characters, two runs of one name, and a list of
/// values for job.name or job.seed.
Result<std::vector<SweptRun>> plan_sweep(const std::string& job_name, const std::string& seeds,
                                         const std::vector<std::string>& overrides);

/// NAME-sweep-lr-gamma: the job's name and the last words of the keys that have several values. The same sweep has the
/// same name whatever its seeds and values are.
std::string sweep_name(const std::string& job_name, const std::vector<std::string>& overrides);

}  // namespace troupe::workers
