#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace troupe {

/// One line of meta/episodes.jsonl.
struct EpisodeRecord {
  std::int64_t index = 0;
  std::int64_t length = 0;  ///< rows
  std::vector<std::string> tasks;
};

/// meta/episodes.jsonl sorted by episode index. Errors: not_found, data_loss; invalid_argument with the line number
/// (not JSON, no episode_index or length, an episode listed twice).
Result<std::vector<EpisodeRecord>> read_episodes(const std::string& root);

/// meta/tasks.jsonl: task_index -> text. Errors: as above.
Result<std::map<std::int64_t, std::string>> read_tasks(const std::string& root);

/// Rows that meta/step_filter.jsonl removes from sampling, as (episode, row); empty without that file. Errors: as
/// above.
Result<std::set<std::pair<std::int64_t, std::int64_t>>> read_step_filter(const std::string& root);

}  // namespace troupe
