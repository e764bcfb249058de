#include "workers/report/compare/compared_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/file_io.h"
#include "configs/loader.h"
#include "workers/report/config_lines.h"

namespace troupe::workers {

namespace {

namespace fs = std::filesystem;

/// The eval.json of the newest step; empty without any. Folders are eval/step_000400, longer from a million steps on.
std::string newest_evaluation(const RunDirectory& directory) {
  std::string newest;
  std::error_code code;
  const auto order = [](const std::string& file) { return std::pair(file.size(), file); };
  for (const auto& entry : fs::directory_iterator(directory.path("eval"), code)) {
    const std::string file = (entry.path() / "eval.json").string();
    if (fs::exists(file, code) && order(file) > order(newest)) newest = file;
  }
  return newest;
}

PlayedSeeds played_seeds(const nlohmann::json& json) {
  PlayedSeeds played{.env = json.at("env").dump()};
  for (const auto& episode : json.at("episodes")) {
    if (episode.contains("lost")) continue;
    const auto seed = episode.at("seed").get<std::int64_t>();
    played.returns[seed] = episode.at("return").get<double>();
    if (episode.contains("success_once")) played.successes[seed] = episode.at("success_once").get<bool>();
  }
  return played;
}

HeldAgainst held_against(const nlohmann::json& json) {
  std::map<std::int64_t, std::pair<double, double>> sums;  // of squares, and how many
  auto windows = nlohmann::json::array({json.at("dataset"), json.at("embodiment"), json.at("horizon")});
  for (const auto& window : json.at("windows")) {
    windows.push_back({window.at("episode"), window.at("row")});
    auto& [squares, count] = sums[window.at("episode").get<std::int64_t>()];
    const auto recorded = window.at("recorded").flatten(), predicted = window.at("predicted").flatten();
    for (const auto& [place, value] : recorded.items()) {
      const auto& guess = predicted.at(place);  // null: not finite
      const double error = guess.is_number() ? guess.get<double>() - value.get<double>() : std::nan("");
      squares += error * error;
      count += 1;
    }
  }
  HeldAgainst against{.windows = windows.dump()};
  for (const auto& [episode, sum] : sums) {
    if (std::isfinite(sum.first)) against.mse[episode] = sum.first / sum.second;
  }
  return against;
}

/// Numbers of a JSON object by dotted name.
void add_numbers(const nlohmann::json& json, const std::string& name, std::map<std::string, double>& out) {
  if (json.is_object()) {
    for (const auto& [key, value] : json.items()) add_numbers(value, name.empty() ? key : name + "." + key, out);
  } else if (json.is_number()) {
    out[name] = json.get<double>();
  }
}

Result<void> read_evaluation(const std::string& file, ComparedRun& run) {
  TROUPE_ASSIGN(const std::string text, read_file(file));
  try {
    const auto json = nlohmann::json::parse(text);
    if (json.at("kind") == "episodes") {
      run.episodes = played_seeds(json);
    } else {
      add_numbers(json.at("overall"), "", run.open_loop);
      run.held_against = held_against(json);
    }
  } catch (const nlohmann::json::exception& e) {
    return Error{
        Errc::failed_precondition,
        fmt::format("{}: not an evaluation of `troupe eval` ({}); evaluate again or remove it", file, e.what())};
  }
  return {};
}

/// Takes out who stepped the environments where the job did not say it: the machine chose, by what it knew of steps at
/// the time, and no bit depends on it.
void drop_chosen_isolation(const std::string& recorded_yaml, std::map<std::string, std::string>& settings) {
  for (const ConfigLine& line : config_lines(recorded_yaml)) {
    if (line.path == "cluster.isolation.env" && line.source == "default") settings.erase(line.path);
  }
  settings.erase("cluster.isolation");  // the line of a map without entries
}

}  // namespace

Result<ComparedRun> read_compared_run(const RunDirectory& directory) {
  ComparedRun run{.directory = directory, .job = {}};
  TROUPE_ASSIGN(const std::string yaml, read_file(directory.config()));
  LoadOutcome loaded = load_job_text(directory.config(), yaml, {});
  if (!loaded.config) {
    return Error{Errc::failed_precondition, fmt::format("{}: this version does not read the configuration:\n{}",
                                                        directory.config(), fmt::join(loaded.errors, "\n"))};
  }
  run.job = std::move(loaded.config->job);
  for (const ConfigLine& line : config_lines(loaded.config->resolved_yaml)) {
    if (line.is_leaf()) run.settings[line.path] = line.value;
  }
  drop_chosen_isolation(yaml, run.settings);
  const std::string metrics = directory.path("metrics.jsonl");
  if (!fs::exists(metrics)) {
    return Error{Errc::failed_precondition,
                 fmt::format("{}: not there, so there is nothing to compare: {}", metrics,
                             std::count(run.job.metrics.sinks.begin(), run.job.metrics.sinks.end(), "jsonl") == 0
                                 ? "metrics.sinks of that job has no jsonl"
                                 : "no step has ended")};
  }
  TROUPE_ASSIGN(run.metrics, read_metric_file(metrics));
  if (const std::string file = newest_evaluation(directory); !file.empty()) TROUPE_TRY(read_evaluation(file, run));
  return run;
}

}  // namespace troupe::workers
