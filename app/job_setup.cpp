#include "app/job_setup.h"

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>

#include "app/commands.h"
#include "data/toy/toy_dataset.h"

namespace troupe::app {

std::optional<LoadedConfig> load_or_explain(const std::string& job, const std::vector<std::string>& overrides) {
  LoadOutcome outcome = load_job(job, overrides);
  for (const std::string& error : outcome.errors) fmt::print(stderr, "{}\n", error);
  if (!outcome.config) return std::nullopt;
  return std::move(outcome.config);
}

Result<void> ensure_quickstart_data(const JobConfig& job) {
  const std::string& path = job.data.sets.at(0).path;
  if (std::filesystem::exists(path + "/meta/info.json")) return {};
  fmt::print("generating a toy dataset in {}\n", path);
  std::fflush(stdout);
  return write_toy_dataset(path, {});
}

int explain(const Infeasible& infeasible, const LoadedConfig& config) {
  bool only_batch = !infeasible.reasons.empty();
  for (const std::string& reason : infeasible.reasons) {
    const std::size_t end = reason.find_first_of(" :");
    const std::string key = reason.substr(0, end);
    only_batch &= key.starts_with("training.");
    if (config.origins.count(key)) {
      fmt::print(stderr, "{}\n", config.error_at(key, reason));
    } else {
      fmt::print(stderr, "plan: error: {}\n", reason);
    }
  }
  return only_batch ? kUsage : kInfeasible;
}

int explain(const Error& error, const LoadedConfig& config) {
  const std::string key = error.message().substr(0, error.message().find(':'));
  if (config.origins.count(key)) {
    fmt::print(stderr, "{}\n", config.error_at(key, error.message()));
  } else {
    fmt::print(stderr, "error: {}\n", error.message());
  }
  return kUsage;
}

}  // namespace troupe::app
