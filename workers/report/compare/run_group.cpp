#include "workers/report/compare/run_group.h"

#include <fmt/format.h>

#include <algorithm>
#include <regex>
#include <set>
#include <utility>

namespace troupe::workers {

namespace {

std::map<std::string, std::string> settings_but_seed(const ComparedRun& run) {
  auto settings = run.settings;
  for (const char* key : {"job.seed", "job.name", "job.run_root"}) settings.erase(key);
  return settings;
}

std::string value_of(const RunGroup& group, const std::string& key) {
  const auto& settings = group.runs.front().settings;
  const auto found = settings.find(key);
  return found == settings.end() ? "-" : found->second;
}

void find_differences(std::vector<RunGroup>& groups) {
  std::set<std::string> keys;
  for (const RunGroup& group : groups) {
    for (const auto& [key, value] : settings_but_seed(group.runs.front())) keys.insert(key);
  }
  for (const std::string& key : keys) {
    const std::string first = value_of(groups.front(), key);
    if (std::all_of(groups.begin(), groups.end(), [&](const RunGroup& g) { return value_of(g, key) == first; }))
      continue;
    for (RunGroup& group : groups) group.differing[key] = value_of(group, key);
  }
}

void name_groups(std::vector<RunGroup>& groups) {
  static const std::regex seed("-seed[0-9]+");
  for (RunGroup& group : groups) group.label = std::regex_replace(group.runs.front().job.job.name, seed, "");
  std::map<std::string, int> uses;
  for (const RunGroup& group : groups) ++uses[group.label];
  for (RunGroup& group : groups) {
    if (uses[group.label] == 1) continue;
    std::vector<std::string> words;
    for (const auto& [key, value] : group.differing) words.push_back(key + "=" + value);
    group.label += fmt::format(" ({})", fmt::join(words, ", "));
  }
}

}  // namespace

std::vector<RunGroup> group_runs(std::vector<ComparedRun> runs) {
  std::vector<RunGroup> groups;
  for (ComparedRun& run : runs) {
    const auto settings = settings_but_seed(run);
    auto group = std::find_if(groups.begin(), groups.end(),
                              [&](const RunGroup& g) { return settings_but_seed(g.runs.front()) == settings; });
    if (group == groups.end()) group = groups.insert(groups.end(), RunGroup{});
    group->runs.push_back(std::move(run));
  }
  for (RunGroup& group : groups) {
    std::stable_sort(group.runs.begin(), group.runs.end(),
                     [](const ComparedRun& a, const ComparedRun& b) { return a.job.job.seed < b.job.job.seed; });
  }
  if (groups.empty()) return groups;
  find_differences(groups);
  name_groups(groups);
  return groups;
}

}  // namespace troupe::workers
