// `troupe init DATA`, `troupe init --env ID`: a first job from what a dataset or an environment says of itself.
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <utility>
#include <vector>

#include "app/command_progress.h"
#include "app/commands.h"
#include "app/exit_code.h"
#include "base/durable_file.h"
#include "base/shell_word.h"
#include "configs/loader.h"
#include "data/health/health_check.h"
#include "data/init/first_files.h"
#include "env/registry/env_job.h"
#include "workers/node/inventory.h"

namespace troupe::app {
namespace {

namespace fs = std::filesystem;

/// A file to write, by its absolute path.
using NewFile = std::pair<fs::path, std::string>;

Result<void> refuse_existing(const fs::path& folder, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    std::error_code code;
    if (!fs::exists(fs::symlink_status(folder / name, code))) continue;
    return Error{Errc::failed_precondition,
                 fmt::format("{} is there already, and init overwrites nothing: another --out, or move it away",
                             (folder / name).string())};
  }
  return {};
}

MachineFacts this_machine() {
  const ClusterSnapshot cluster = own_cluster();
  if (cluster.nodes.empty()) return {};
  return {.cores = cluster.nodes.front().cpus, .memory_bytes = cluster.nodes.front().memory_bytes};
}

Result<std::vector<NewFile>> files_for_dataset(const InitOptions& options, const fs::path& folder) {
  TROUPE_TRY(refuse_existing(folder, {"robot.yaml", "job.yaml"}));
  TROUPE_ASSIGN(const DatasetFacts facts, read_dataset_facts(options.data));
  TROUPE_ASSIGN(RobotGuess robot, guess_robot(facts));
  fmt::print("reading {} episodes of {}\n", facts.episodes, facts.root);
  std::fflush(stdout);
  HealthOptions asked;
  asked.data = facts.root;
  asked.embodiment = robot.embodiment;
  const auto examine = [&] {
    CommandProgress line("init");
    asked.progress = line.of_parts();
    return check_health(asked);
  };
  TROUPE_ASSIGN(HealthReport report, examine());
  report.root = facts.root;
  judge_by_statistics(report, robot);
  TROUPE_ASSIGN(const JobGuess job, guess_job(report, robot, this_machine()));
  const fs::path robot_file = folder / "robot.yaml";
  return std::vector<NewFile>{{robot_file, robot_yaml(robot, report)},
                              {folder / "job.yaml", job_yaml(job, report, robot_file.string())}};
}

Result<std::vector<NewFile>> files_for_env(const InitOptions& options, const fs::path& folder) {
  TROUPE_TRY(refuse_existing(folder, {"job.yaml"}));
  TROUPE_ASSIGN(std::string text, env_job_yaml(options.env));
  return std::vector<NewFile>{{folder / "job.yaml", std::move(text)}};
}

Result<void> init(const InitOptions& options) {
  if (options.data.empty() == options.env.empty())
    return Error{Errc::invalid_argument,
                 "give either a dataset, `troupe init DATA --out DIR`, or an environment, `troupe init --env ID --out "
                 "DIR`"};
  std::error_code code;
  const fs::path folder = fs::weakly_canonical(fs::absolute(options.out, code), code);
  if (code) return Error{Errc::invalid_argument, fmt::format("--out {}: {}", options.out, code.message())};
  TROUPE_ASSIGN(const auto files,
                options.env.empty() ? files_for_dataset(options, folder) : files_for_env(options, folder));
  fs::create_directories(folder, code);
  if (code) return Error{Errc::invalid_argument, fmt::format("--out {}: {}", folder.string(), code.message())};
  for (const auto& [path, text] : files) {
    TROUPE_TRY(write_file_durably(path.string(), text));
    fmt::print("wrote      {}\n", path.string());
  }
  const std::string job = files.back().first.string();
  fmt::print("next       troupe plan {0}\n           troupe run {0}\n", shell_word(job));
  return {};
}

}  // namespace

int init_command(const InitOptions& options) {
  const auto done = init(options);
  return done ? static_cast<int>(kOk) : complain_of_data(done.error());
}

}  // namespace troupe::app
