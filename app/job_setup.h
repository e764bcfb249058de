#pragma once

#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "configs/loader.h"
#include "env/env_spec.h"
#include "placement/planner.h"
#include "workers/controller/resume.h"

namespace troupe::app {

/// A job as it was loaded; nothing after every mistake was printed to stderr.
std::optional<LoadedConfig> take_or_explain(LoadOutcome outcome);
/// The same of load_job().
std::optional<LoadedConfig> load_or_explain(const std::string& job, const std::vector<std::string>& overrides);

/// Prints the doubts about a job to stderr.
void print_warnings(const LoadedConfig& config);

/// Generates the quickstart's dataset at the job's path unless its meta/info.json is there, and says so on `talk`
/// and how far it is on stderr.
/// Errors: those of write_toy_dataset.
Result<void> ensure_quickstart_data(const JobConfig& job, std::FILE* talk = stdout);

/// Whether a job is quickstart:sft with the dataset that it brings, and this is not there yet. A path that a user named
/// is never filled.
bool lacks_quickstart_data(const LoadedConfig& config);
/// Generates it then, and makes its path absolute. Errors: those of ensure_quickstart_data.
Result<void> make_quickstart_data(LoadedConfig& config, std::FILE* talk = stdout);

/// What the environment of a run is, nothing where the job has none. A run that goes on keeps its own, and refuses an
/// env.spec that says otherwise. Errors: those of env_spec_of, kept_env_spec and check_same_spec.
Result<EnvSpec> env_of_run(const JobConfig& job, const ResumePoint& point);

/// Whether further nodes could dial `listen` (run --listen; empty: none join). Errors: invalid_argument for an address
/// that is every address of this machine, and for cluster.allow without one.
Result<void> check_listen(const std::string& listen, const JobConfig& job);

/// Prints why a job cannot run. Returns the exit code: kUsage when only numbers under `training` do not fit each other,
/// which no machine would mend, else kInfeasible.
int explain(const Infeasible& infeasible, const LoadedConfig& config);
/// Prints an error of the user's making, at the key that its message begins with where it does. Returns kUsage.
int explain(const Error& error, const LoadedConfig& config);

}  // namespace troupe::app
