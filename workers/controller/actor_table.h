#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "placement/plan.h"

namespace troupe {

/// Life of one planned actor as the controller sees it.
enum class ActorState : std::uint8_t {
  planned,   ///< not started yet, or waiting for its restart time
  starting,  ///< Spawn was sent
  up,        ///< reported ActorUp
  stopping,  ///< Stop was sent
  gone,      ///< exited and not wanted back
};
std::string_view to_string(ActorState state) noexcept;

/// One row of the controller's table.
struct ActorRecord {
  PlannedActor plan;
  ActorState state = ActorState::planned;
  std::int64_t incarnation = -1;  ///< of the newest Spawn; -1: never spawned
  std::int64_t restarts = 0;
  std::int64_t pid = 0;
  std::vector<std::string> channels, weights;  ///< what ActorUp said
  bool removing = false;                       ///< scaled away: its exit ends the row
  std::optional<std::chrono::steady_clock::time_point> restart_at;
  std::chrono::steady_clock::time_point since{};

  /// "decoder/0#1": unique over restarts.
  std::string instance() const { return plan.name + "#" + std::to_string(incarnation); }
};

/// All actors of a job by name. A value with look-ups; the rules are in JobController.
class ActorTable {
 public:
  void add(const PlannedActor& actor) { rows_[actor.name].plan = actor; }
  void erase(const std::string& name) { rows_.erase(name); }
  /// Number of the next start of `name`, counted over the whole job, so that an instance's name never comes back.
  std::int64_t next_incarnation(const std::string& name) { return incarnations_[name]++; }
  ActorRecord* find(const std::string& name);
  std::vector<ActorRecord*> of_role(std::string_view role);
  std::map<std::string, ActorRecord>& rows() { return rows_; }
  const std::map<std::string, ActorRecord>& rows() const { return rows_; }
  /// Whether every actor of the role is up.
  bool all_up(std::string_view role);

 private:
  std::map<std::string, ActorRecord> rows_;
  std::map<std::string, std::int64_t> incarnations_;
};

}  // namespace troupe
