#pragma once

#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/result.h"
#include "configs/loader.h"
#include "data/mixture.h"
#include "placement/planner.h"

namespace troupe {

/// Loads a job or prints every mistake to stderr. For `quickstart:sft` without data, the dataset is generated first.
std::optional<LoadedConfig> load_or_explain(const std::string& job, const std::vector<std::string>& overrides);

/// Opens the job's datasets; with bad files and bad_sample fail, the error lists them all.
Result<std::shared_ptr<const Mixture>> open_mixture(const JobConfig& job);
/// Generates the quickstart's dataset at the job's path unless it is there.
Result<void> ensure_quickstart_data(const JobConfig& job);

/// Sizes and FLOPs for the planner, from the very unit list that the engine lays out.
Result<ModelCost> model_cost(const JobConfig& job);
/// This machine as the only node of a cluster.
ClusterSnapshot own_cluster();
/// Prints why a job cannot run. Returns the exit code: kUsage when only numbers under `training` do not fit each other,
/// which no machine would mend, else kInfeasible.
int explain(const Infeasible& infeasible, const LoadedConfig& config);
/// Prints an error of the user's making, at the key that its message begins with where it does. Returns kUsage.
int explain(const Error& error, const LoadedConfig& config);

}  // namespace troupe
