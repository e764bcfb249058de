#include "workers/controller/run_listing.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "base/file_io.h"
#include "workers/controller/job_state.h"
#include "workers/controller/run_lock.h"
#include "workers/controller/state_db.h"

namespace troupe::workers {

namespace fs = std::filesystem;

namespace {

constexpr std::int64_t kTailBytes = 256 << 10;

/// The last whole lines of a file.
std::vector<std::string> last_lines(const std::string& path) {
  std::ifstream in(path, std::ios::binary | std::ios::ate);
  if (!in) return {};
  const auto size = static_cast<std::int64_t>(in.tellg());
  const std::int64_t begin = std::max<std::int64_t>(0, size - kTailBytes);
  in.seekg(begin);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  if (begin > 0 && !lines.empty()) lines.erase(lines.begin());
  return lines;
}

/// From the newest line back, until there is a step and a value.
void read_progress(ListedRun& listed) {
  const auto lines = last_lines(listed.run.path("metrics.jsonl"));
  for (auto line = lines.rbegin(); line != lines.rend() && !listed.value; ++line) {
    const auto json = nlohmann::json::parse(*line, nullptr, /*allow_exceptions=*/false);
    if (!json.is_object() || !json.contains("m")) continue;  // cut off by a crash
    listed.step = std::max(listed.step, json.value("step", std::int64_t{0}));
    for (const auto& [metric, measure] : {std::pair("env/return", "return"), std::pair("train/loss", "loss")}) {
      const auto found = json["m"].find(metric);
      if (listed.value || found == json["m"].end() || !found->is_number()) continue;
      listed.measure = measure;
      listed.value = found->get<double>();
    }
  }
}

std::string state_of(const RunDirectory& run, bool is_live) {
  const auto db = StateDb::open_read_only(run.state_db());
  const auto state = db ? (*db)->job_state() : Result<std::string>(db.error());
  if (!state) return is_live ? "STARTING" : "UNREADABLE";
  const auto parsed = enum_value<JobState>(*state);
  return is_live || (parsed && exit_code(*parsed)) ? *state : "KILLED";
}

double seconds_since_change(const RunDirectory& run) {
  std::error_code code;
  auto changed = fs::last_write_time(run.path("metrics.jsonl"), code);
  if (code) changed = fs::last_write_time(run.root(), code);
  if (code) return 0;
  return std::chrono::duration<double>(fs::file_time_type::clock::now() - changed).count();
}

}  // namespace

ListedRun list_run(const RunDirectory& run) {
  ListedRun listed{.run = run,
                   .name = fs::path(run.root()).parent_path().filename().string(),
                   .state = {},
                   .pid = controller_of(run)};
  listed.state = state_of(run, listed.pid.has_value());
  read_progress(listed);
  listed.age_seconds = seconds_since_change(run);
  return listed;
}

std::vector<ListedRun> list_runs(const std::string& run_root) {
  std::error_code code;
  const fs::path latest = fs::canonical(fs::path(run_root) / "latest", code);
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(run_root, code)) {
    if (entry.is_directory(code) && !entry.is_symlink(code)) names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  std::vector<ListedRun> runs;
  for (const std::string& name : names) {
    for (const RunDirectory& run : runs_of(run_root, name)) {
      ListedRun listed = list_run(run);
      listed.bytes = bytes_below(run.root());
      listed.is_latest = !latest.empty() && fs::equivalent(run.root(), latest, code);
      runs.push_back(std::move(listed));
    }
  }
  return runs;
}

std::vector<ListedRun> removable_runs(const std::vector<ListedRun>& runs, std::int64_t keep) {
  std::map<std::string, std::int64_t> kept;
  std::vector<ListedRun> removable;
  for (const ListedRun& listed : runs) {
    if (kept[listed.name]++ < keep || listed.pid || listed.is_latest) continue;
    removable.push_back(listed);
  }
  return removable;
}

}  // namespace troupe::workers
