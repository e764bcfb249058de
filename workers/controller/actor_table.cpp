#include "workers/controller/actor_table.h"

#include <algorithm>

namespace troupe::workers {

ActorRecord* ActorTable::came_up(const ActorUp& m, std::chrono::steady_clock::time_point now) {
  ActorRecord* actor = find(m.actor);
  if (!actor || m.incarnation != actor->incarnation || actor->state != ActorState::starting) return nullptr;
  actor->state = ActorState::up;
  actor->pid = m.pid;
  actor->channels = m.channels;
  actor->weights = m.weights;
  actor->since = now;
  return actor;
}

ActorRecord* ActorTable::ended(const ActorExited& m) {
  ActorRecord* actor = find(m.actor);
  // An end that was taken in before: the start waits for its next one, or is not wanted back.
  const bool has_ended = actor && (actor->state == ActorState::gone || actor->state == ActorState::planned);
  if (!actor || m.incarnation != actor->incarnation || has_ended) return nullptr;
  actor->state = ActorState::gone;
  return actor;
}

ActorRecord* ActorTable::find(const std::string& name) {
  const auto row = rows_.find(name);
  return row == rows_.end() ? nullptr : &row->second;
}

const ActorRecord* ActorTable::find(const std::string& name) const {
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

bool ActorTable::all_ended() const {
  return std::all_of(rows_.begin(), rows_.end(), [](const auto& row) {
    return row.second.state == ActorState::gone || row.second.state == ActorState::planned;
  });
}

}  // namespace troupe::workers
