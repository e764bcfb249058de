#include "app/job_setup.h"

#include <fmt/format.h>

#include <filesystem>

#include "app/command_progress.h"
#include "app/exit_code.h"
#include "comm/control/endpoint.h"
#include "data/toy/toy_dataset.h"
#include "env/env_spec_json.h"
#include "env/registry/registry.h"

namespace troupe::app {

std::optional<LoadedConfig> take_or_explain(LoadOutcome outcome) {
  for (const std::string& error : outcome.errors) fmt::print(stderr, "{}\n", error);
  return std::move(outcome.config);
}

std::optional<LoadedConfig> load_or_explain(const std::string& job, const std::vector<std::string>& overrides) {
  return take_or_explain(load_job(job, overrides));
}

void print_warnings(const LoadedConfig& config) {
  for (const std::string& warning : config.warnings) fmt::print(stderr, "{}\n", warning);
}

namespace {
bool has_dataset(const std::string& path) { return std::filesystem::exists(path + "/meta/info.json"); }
}  // namespace

Result<void> ensure_quickstart_data(const JobConfig& job, std::FILE* talk) {
  const std::string& path = job.data.sets.at(0).path;
  if (has_dataset(path)) return {};
  fmt::print(talk, "generating a toy dataset in {}\n", path);
  std::fflush(talk);
  // Few frames a second, so that the arm goes far within one call of the policy.
  CommandProgress line("toy dataset");
  return write_toy_dataset(path, {.episodes = 160, .frames = 32, .fps = 5}, line.of_units("episodes"));
}

bool lacks_quickstart_data(const LoadedConfig& config) {
  if (config.sources.empty() || config.sources.back() != "recipes/quickstart_sft.yaml") return false;
  const auto named_by = config.provenance.find("data.sets[0].path");
  const bool is_its_own =
      named_by != config.provenance.end() && named_by->second != "command line" && named_by->second != "TROUPE_SET";
  return is_its_own && !has_dataset(config.job.data.sets.at(0).path);
}

Result<void> make_quickstart_data(LoadedConfig& config, std::FILE* talk) {
  if (!lacks_quickstart_data(config)) return {};
  TROUPE_TRY(ensure_quickstart_data(config.job, talk));
  resolve_dataset_paths(config);
  return {};
}

Result<EnvSpec> env_of_run(const JobConfig& job, const ResumePoint& point) {
  if (!point.run) return env_spec_of(job.env);
  TROUPE_ASSIGN(EnvSpec kept, kept_env_spec(point.run->root(), job.env));
  if (!job.env.spec.empty()) {
    TROUPE_ASSIGN(const EnvSpec told, env_spec_of(job.env));
    if (auto same = check_same_spec(told, kept, point.run->env_spec()); !same)
      return same.error().with("env.spec: " + job.env.spec);
  }
  return kept;
}

Result<void> check_listen(const std::string& listen, const JobConfig& job) {
  if (listen.empty()) {
    if (job.cluster.allow.empty()) return {};
    return Error{Errc::invalid_argument, "cluster.allow names keys that may connect; add --listen HOST:PORT"};
  }
  const auto endpoint = parse_endpoint("tcp://" + listen);
  if (!endpoint) return endpoint.error().with("--listen");
  if (!is_wildcard(*endpoint) || !job.cluster.advertise.empty()) return {};
  return Error{Errc::invalid_argument,
               fmt::format("--listen {} is every address of this machine, and none that others can dial; add "
                           "cluster.advertise=HOST, the name or address that they reach it by",
                           listen)};
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
  if (!config.origins.count(key)) return complain(error, kUsage);
  fmt::print(stderr, "{}\n", config.error_at(key, error.message()));
  return kUsage;
}

}  // namespace troupe::app
