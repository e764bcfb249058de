#pragma once

#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/result.h"
#include "configs/loader.h"
#include "data/sample/open_mixture.h"
#include "placement/planner.h"

namespace troupe::app {

/// Loads a job or prints every mistake to stderr. For `quickstart:sft` without data, the dataset is generated first.
std::optional<LoadedConfig> load_or_explain(const std::string& job, const std::vector<std::string>& overrides);

/// Generates the quickstart's dataset at the job's path unless its meta/info.json is there. Errors: those of
/// write_toy_dataset.
Result<void> ensure_quickstart_data(const JobConfig& job);

/// Sizes in bytes and FLOPs for the planner, from the very unit list that the engine lays out: parameters by unit, kept
/// activations of a sample, the slot of a sample or trajectory, memory of a producer and of frozen networks.
/// Allocates no weights. Errors: invalid_argument (a model that cannot be made); those of make_agent,
/// Demonstrations::open, sample_layout.
Result<ModelCost> model_cost(const JobConfig& job);
/// This machine as the only node of a cluster, with the name "local" (docs/processes.md#inventory).
ClusterSnapshot own_cluster();
/// Prints why a job cannot run. Returns the exit code: kUsage when only numbers under `training` do not fit each other,
/// which no machine would mend, else kInfeasible.
int explain(const Infeasible& infeasible, const LoadedConfig& config);
/// Prints an error of the user's making, at the key that its message begins with where it does. Returns kUsage.
int explain(const Error& error, const LoadedConfig& config);

}  // namespace troupe::app
