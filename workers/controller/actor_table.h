#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/enum_names.h"
#include "comm/control/messages.h"
#include "placement/plan.h"

namespace troupe::workers {

/// Life of one planned actor as the controller sees it.
enum class ActorState : std::uint8_t {
  /// Not started yet, or waiting for its restart time.
  planned,
  /// Spawn was sent to its node.
  starting,
  /// It reported ActorUp.
  up,
  /// Stop was sent to its node; the exit is not confirmed yet.
  stopping,
  /// Exited and not wanted back.
  gone,
};
constexpr auto enum_names(ActorState) { return std::array{"planned", "starting", "up", "stopping", "gone"}; }

/// One planned actor and what is known of it.
struct ActorRecord {
  PlannedActor plan;
  ActorState state = ActorState::planned;
  /// Of the newest Spawn; -1: never spawned. Messages of older incarnations are ignored.
  std::int64_t incarnation = -1;
  /// Restarts of this record, for the status report; budgets are counted by RestartPolicy.
  std::int64_t restarts = 0;
  /// Process id on its node, as ActorUp gave it; kept after the exit.
  std::int64_t pid = 0;
  /// Addresses that ActorUp gave: of its feed, and of a rollout worker's weights (docs/channels.md#addresses).
  std::vector<std::string> channels, weights;
  /// Scaled away: its exit removes the record.
  bool removing = false;
  /// Its node was lost and no other has room for it: it is started when one has.
  bool waits_for_room = false;
  /// When a planned actor is spawned; empty: nothing is to be done.
  std::optional<std::chrono::steady_clock::time_point> restart_at;
  /// When `state` became what it is: Spawn or ActorUp. Start deadlines count from here.
  std::chrono::steady_clock::time_point since{};

  /// "decoder/0#1": unique over restarts.
  std::string instance() const { return plan.name + "#" + std::to_string(incarnation); }
};

/// All actors of a job by name ("decoder/0"). A value with look-ups; the rules are in JobController. Not thread-safe.
/// Pointers that it gives are valid until add() or erase() of that name.
class ActorTable {
 public:
  /// `first_incarnation`: of each actor. A controller that goes on with a job begins where none of the earlier ones'
  /// starts can be: another machine may still host one.
  explicit ActorTable(std::int64_t first_incarnation = 0) : first_incarnation_(first_incarnation) {}
  /// A known name keeps its state and gets the new plan.
  void add(const PlannedActor& actor) { rows_[actor.name].plan = actor; }
  void erase(const std::string& name) { rows_.erase(name); }
  /// Number of the next start of `name`, counted over the whole job, so that an instance's name never comes back.
  std::int64_t next_incarnation(const std::string& name) {
    return incarnations_.try_emplace(name, first_incarnation_).first->second++;
  }
  /// Notes that an actor reported itself, or that its exit is confirmed. Null: the message is of an older incarnation,
  /// or nothing new.
  ActorRecord* came_up(const ActorUp& m, std::chrono::steady_clock::time_point now);
  ActorRecord* ended(const ActorExited& m);
  /// Null: no such actor.
  ActorRecord* find(const std::string& name);
  const ActorRecord* find(const std::string& name) const;
  /// In order of process rank.
  std::vector<ActorRecord*> of_role(std::string_view role);
  std::map<std::string, ActorRecord>& rows() { return rows_; }
  const std::map<std::string, ActorRecord>& rows() const { return rows_; }
  /// Whether every actor of the role is up; false where there is none.
  bool all_up(std::string_view role);
  /// Whether no actor runs.
  bool all_ended() const;

 private:
  const std::int64_t first_incarnation_;
  std::map<std::string, ActorRecord> rows_;
  std::map<std::string, std::int64_t> incarnations_;
};

}  // namespace troupe::workers
