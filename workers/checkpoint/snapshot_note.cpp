#include "workers/checkpoint/snapshot_note.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace troupe::workers {

std::string to_text(const SnapshotNote& note, std::int64_t updates) {
  const bool in_step = std::all_of(note.group_updates.begin(), note.group_updates.end(),
                                   [&](const auto& group) { return group.second == updates; });
  if (note.trainer.empty() && in_step) return {};
  return nlohmann::json{{"group_updates", note.group_updates}, {"trainer", note.trainer}}.dump();
}

Result<SnapshotNote> snapshot_note(const std::string& text) {
  SnapshotNote note;
  if (text.empty()) return note;
  try {
    const auto j = nlohmann::json::parse(text);
    note.group_updates = j.at("group_updates").get<std::map<std::string, std::int64_t>>();
    note.trainer = j.at("trainer").get<std::string>();
    return note;
  } catch (const std::exception& e) {
    return Error{Errc::invalid_argument, fmt::format("what rank 0 said of its snapshot cannot be read: {}", e.what())};
  }
}

}  // namespace troupe::workers
