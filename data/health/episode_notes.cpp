#include "data/health/episode_notes.h"

#include <fmt/format.h>

#include <map>

namespace troupe::data {

namespace {

constexpr double kIdleShare = 0.5;

void note(HealthReport& r, const char* code, std::string text, std::int64_t episode) {
  r.findings.push_back({code, FindingLevel::note, r.root, std::move(text), episode});
}

void note_copies(HealthReport& r) {
  std::map<std::string, std::int64_t> first;
  for (const EpisodeReport& e : r.episodes) {
    if (e.content.empty()) continue;
    const auto [it, is_new] = first.try_emplace(e.content, e.index);
    if (!is_new)
      note(r, "H01",
           fmt::format("{}: episode {} has the states and actions of episode {}", r.root, e.index, it->second),
           e.index);
  }
}

void note_idle(HealthReport& r) {
  for (const EpisodeReport& e : r.episodes) {
    if (static_cast<double>(e.idle_rows) <= kIdleShare * static_cast<double>(e.rows)) continue;
    note(r, "H02",
         fmt::format("{}: in {} of {} rows of episode {} the state is that of the row before ({} in a stretch)", r.root,
                     e.idle_rows, e.rows, e.index, e.longest_idle),
         e.index);
  }
}

/// One note for all episodes, with the worst.
void note_sum(HealthReport& r, const char* code, std::int64_t EpisodeReport::*count, const char* what) {
  std::int64_t sum = 0, episodes = 0;
  const EpisodeReport* worst = nullptr;
  for (const EpisodeReport& e : r.episodes) {
    sum += e.*count;
    episodes += e.*count > 0 ? 1 : 0;
    if (worst == nullptr || e.*count > worst->*count) worst = &e;
  }
  if (sum == 0) return;
  note(r, code,
       fmt::format("{}: {} {} in {} episodes, most ({}) in episode {}", r.root, sum, what, episodes, worst->*count,
                   worst->index),
       worst->index);
}

}  // namespace

void note_episodes(HealthReport& r) {
  note_copies(r);
  note_idle(r);
  note_sum(r, "H03", &EpisodeReport::outliers, "values lie more than 3 (q99 - q01) outside [q01, q99]");
  note_sum(r, "H04", &EpisodeReport::jumps, "steps from one row to the next exceed half of q99 - q01");
}

}  // namespace troupe::data
