#include "workers/controller/actor_table.h"

#include <algorithm>

namespace troupe::workers {

std::string_view to_string(ActorState state) noexcept {
  switch (state) {
    case ActorState::planned:
      return "planned";
    case ActorState::starting:
      return "starting";
    case ActorState::up:
      return "up";
    case ActorState::stopping:
      return "stopping";
    case ActorState::gone:
      return "gone";
  }
  return "unknown";
}

ActorRecord* ActorTable::find(const std::string& name) {
  const auto row = rows_.find(name);
  return row == rows_.end() ? nullptr : &row->second;
}

std::vector<ActorRecord*> ActorTable::of_role(std::string_view role) {
  std::vector<ActorRecord*> found;
  for (auto& [name, row] : rows_) {
    if (row.plan.role == role) found.push_back(&row);
  }
  std::sort(found.begin(), found.end(),
            [](const ActorRecord* a, const ActorRecord* b) { return a->plan.process_rank < b->plan.process_rank; });
  return found;
}

bool ActorTable::all_up(std::string_view role) {
  const auto rows = of_role(role);
  return !rows.empty() &&
         std::all_of(rows.begin(), rows.end(), [](const ActorRecord* row) { return row->state == ActorState::up; });
}

}  // namespace troupe::workers
