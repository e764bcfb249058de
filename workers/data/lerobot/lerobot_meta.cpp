#include "workers/data/lerobot/lerobot_meta.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <sstream>

#include "workers/data/lerobot/file_checks.h"

namespace troupe {

namespace {

using Json = nlohmann::json;

/// Calls `take` with every non-blank line of a JSON-lines file; what it throws becomes an error that names file and
/// line.
Result<void> for_each_line(const std::string& path, const std::function<Result<void>(const Json&)>& take) {
  TROUPE_ASSIGN(const std::string text, read_text_file(path));
  std::istringstream lines(text);
  std::string line;
  for (std::int64_t number = 1; std::getline(lines, line); ++number) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    const std::string where = fmt::format("{} line {}", path, number);
    try {
      if (auto taken = take(Json::parse(line)); !taken) return taken.error().with(where);
    } catch (const nlohmann::json::exception& e) {
      return Error{Errc::invalid_argument, fmt::format("{}: {}", where, e.what())};
    }
  }
  return {};
}

}  // namespace

Result<std::vector<EpisodeRecord>> read_episodes(const std::string& root) {
  std::vector<EpisodeRecord> episodes;
  TROUPE_TRY(for_each_line(root + "/meta/episodes.jsonl", [&](const Json& json) -> Result<void> {
    EpisodeRecord record{.index = json.at("episode_index"), .length = json.at("length"), .tasks = {}};
    if (record.index < 0 || record.length < 0) {
      return Error{Errc::invalid_argument,
                   fmt::format("episode_index {} and length {} are not both >= 0", record.index, record.length)};
    }
    if (json.contains("tasks") && json["tasks"].is_array())
      record.tasks = json["tasks"].get<std::vector<std::string>>();
    episodes.push_back(std::move(record));
    return {};
  }));
  std::stable_sort(episodes.begin(), episodes.end(), [](const auto& a, const auto& b) { return a.index < b.index; });
  for (std::size_t i = 1; i < episodes.size(); ++i) {
    if (episodes[i].index == episodes[i - 1].index) {
      return Error{Errc::invalid_argument,
                   fmt::format("{}/meta/episodes.jsonl lists episode {} twice", root, episodes[i].index)};
    }
  }
  return episodes;
}

Result<std::map<std::int64_t, std::string>> read_tasks(const std::string& root) {
  std::map<std::int64_t, std::string> tasks;
  TROUPE_TRY(for_each_line(root + "/meta/tasks.jsonl", [&](const Json& json) -> Result<void> {
    tasks[json.at("task_index").get<std::int64_t>()] = json.at("task").get<std::string>();
    return {};
  }));
  return tasks;
}

Result<std::set<std::pair<std::int64_t, std::int64_t>>> read_step_filter(const std::string& root) {
  std::set<std::pair<std::int64_t, std::int64_t>> removed;
  const std::string path = root + "/meta/step_filter.jsonl";
  if (!std::filesystem::exists(path)) return removed;
  TROUPE_TRY(for_each_line(path, [&](const Json& json) -> Result<void> {
    const std::int64_t episode = json.at("episode_index");
    for (std::int64_t row : json.at("step_indices")) removed.emplace(episode, row);
    return {};
  }));
  return removed;
}

}  // namespace troupe
