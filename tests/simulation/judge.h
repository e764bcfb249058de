#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "comm/control/actor_identity.h"
#include "tests/simulation/wire.h"
#include "workers/controller/service.h"
#include "workers/node/node_membership.h"

namespace troupe::testing {

/// Time less the gaps of more than 2 s in the work of a process (docs/processes.md#membership).
class AwakeTime {
 public:
  SimTime at(SimTime now) {
    if (last_ != SimTime{} && now - last_ > 2s) slept_ += now - last_;
    last_ = now;
    return now - slept_;
  }

 private:
  SimTime last_{};
  SimTime::duration slept_{};
};

/// The controller's table has this actor's process on its node.
inline bool is_hosted(const ActorRecord& row) {
  return row.state == ActorState::starting || row.state == ActorState::up || row.state == ActorState::stopping;
}

/// What the judges of one controller look at.
struct Seen {
  const ControllerService* service = nullptr;
  const Membership* membership = nullptr;
  std::uint64_t term = 0;
  /// Of the controller, without its gaps.
  SimTime now{};
  /// It has been started and has neither stopped its actors nor ended.
  bool wants_actors() const {
    return is_started && service->job().state() != JobState::stopping && !service->exit_code();
  }
  bool is_started = false;
};

/// Nodes: the newest process of each name, and when the controller last heard it (docs/processes.md#membership).
class MembershipJudge {
 public:
  MembershipJudge(const Seen& seen, Breach breach) : seen_(seen), breach_(std::move(breach)) {}

  /// Before the controller is told; `from` is the sender's address.
  void hears(const std::string& from, const Join& join);
  void hears(const std::string& from, const Heartbeat& beat);
  void sends(const std::string& to, const Message& message);
  /// Before the controller looks at its clock.
  void ticks();
  /// The controller has done what followed from the newest of these.
  void settled();
  /// The controller answers no request before the job is started.
  void owes_no_answer() { owed_.clear(), newly_lost_.clear(); }

  /// Of a node's rank; alive for node/0, lost for one that is none.
  NodePresence presence(std::int64_t rank) const;
  std::optional<std::int64_t> rank_of(const std::string& address) const;
  /// "node/1#INCARNATION" of the newest process of this rank.
  std::string agent_of(std::int64_t rank) const;
  /// Ranks that were lost, or taken over by another process, since the last call.
  std::set<std::int64_t> taken_lost() { return std::exchange(newly_lost_, {}); }

 private:
  struct Named {
    std::int64_t rank = 0;
    std::uint64_t incarnation = 0;
    std::string address, key;
    SimTime last_heard{};
    NodePresence presence = NodePresence::alive;
  };
  enum class Answer : std::uint8_t { none, joined, refused };

  const Seen& seen_;
  const Breach breach_;
  std::map<std::string, Named> names_;
  std::map<std::string, std::set<std::uint64_t>> retired_;
  std::set<std::int64_t> newly_lost_;
  // What has to follow by settled(), and what did, by address.
  std::map<std::string, Answer> owed_, given_;
  std::optional<std::pair<std::string, bool>> owed_ack_;
  bool has_ticked_ = false;
};

/// Fences, groups and checkpoints.
class GroupJudge {
 public:
  /// Positions of a step.
  static constexpr std::int64_t kBatch = 4;
  GroupJudge(const Seen& seen, Breach breach) : seen_(seen), breach_(std::move(breach)) {}

  /// A controller goes on at this step; fences of those before it stay spent. `is_recorded`: state.db has this fence as
  /// the newest.
  void begins(std::int64_t resume_step, std::string checkpoints_folder,
              std::function<bool(std::uint64_t fence)> is_recorded);
  void hears(const Message& message);
  void sends(const std::string& to, const Message& message);
  /// The newest step whose checkpoint was given up.
  std::optional<std::int64_t> last_given_up() const { return last_given_up_; }
  /// A learner has ended: the others have to be told.
  void loses(const std::string& learner);
  void settled(bool has_ticked);

  /// Of the group that stands; 0 before the controller's first.
  std::uint64_t fence() const { return seen_.service ? seen_.service->job().fence() : 0; }
  /// The fence that a message speaks for; nothing: it speaks for none.
  static std::optional<std::uint64_t> fence_of(const Message& message);

 private:
  struct Begun {
    std::int64_t step = 0;
    SimTime at{};
    std::optional<SimTime> retry_at = {};
  };
  /// There may be a newer group than before.
  void looks_for_group();
  void told(const std::string& to, const GroupPlan& plan);
  void begins_write(const CheckpointBegin& begin);
  void settles_write(const std::string& to, const CheckpointCommitted& settled);
  void judge_deadlines();
  /// The group does not stand any more.
  void drops_group();

  const Seen& seen_;
  const Breach breach_;
  std::string folder_;
  std::uint64_t fence_ = 0;
  std::int64_t step_ = 0, world_ = 2;
  bool is_telling_ = false;
  std::function<bool(std::uint64_t)> is_recorded_;
  // Ranks that were told of the newest group, and those that are in it.
  std::set<std::string> told_, up_;
  bool is_complete_now_ = false;
  // Of the newest group, by rank and step: handles of snapshots that are not settled.
  std::map<std::pair<std::int64_t, std::int64_t>, std::string> snapshots_;
  std::optional<std::int64_t> whole_step_;
  std::optional<Begun> begun_;
  // Writes of the newest step that were begun, under any fence.
  std::map<std::int64_t, int> attempts_;
  std::optional<std::int64_t> written_, given_up_, last_given_up_;
  bool is_owed_give_up_ = false;
  std::set<std::int64_t> voids_;
  std::optional<SimTime> regroup_by_;
  std::set<std::string> owed_abort_;
};

/// Starts of actors: their owners, nodes, pauses and memory, and what other actors are told of their ends.
class ActorJudge {
 public:
  ActorJudge(const Seen& seen, Breach breach) : seen_(seen), breach_(std::move(breach)) {}

  /// Another controller goes on, with these nodes: all that the one before has started is left behind.
  void begins(const MembershipJudge& nodes);
  void hears(const std::string& from, const Message& message);
  void sends(const std::string& to, const Message& message, std::uint64_t fence);
  /// All that a rank hosts is given up.
  void loses(std::int64_t rank);
  void settled(bool has_ticked);

  /// Whether this start counts as lost with its node.
  bool is_left(const std::string& instance) const;
  /// The table has this start, in its place and not ended.
  bool is_owned(const std::string& instance, std::int64_t rank) const;
  /// The agent that may report the end of this start; nothing: it was never started.
  std::optional<std::string> agent_of_start(const std::string& instance) const;
  /// The learner whose end the newest message reported, where that end counts; else nothing.
  const std::optional<std::string>& lost_learner() const { return lost_learner_; }

 private:
  struct Start {
    std::string actor, role;
    std::int64_t rank = 0, memory = 0;
    SimTime since{};
    bool is_up = false, has_ended = false, is_left = false, is_unkillable = false;
    std::optional<SimTime> told_to_end = {};
  };
  struct Pause {
    std::string actor;
    SimTime earliest{}, latest{};
    bool is_refused = false;
  };
  void starts(const std::string& to, const Spawn& spawn);
  void ends(const ActorExited& exited);
  void introduces(const std::string& to, const Peers& peers, std::uint64_t fence);
  /// What docs/processes.md#restart says of this end.
  Pause pause_after(const ActorExited& exited, const std::string& role);
  /// The newest end of it does not count.
  void forgives(const std::string& instance);
  void judge_table();

  const Seen& seen_;
  const MembershipJudge* nodes_ = nullptr;
  const Breach breach_;
  std::map<std::string, Start> starts_;
  std::map<std::string, std::deque<SimTime>> restarts_, of_role_;
  // Fence and step of the newest evaluation that was begun, and by how many processes.
  std::pair<std::uint64_t, std::int64_t> begun_{};
  int begins_ = 0;
  // When an actor came up, and since when one that waits for room has had some.
  std::map<std::string, SimTime> up_since_, room_since_;
  std::optional<Pause> owed_pause_;
  std::set<std::string> stopped_now_;
  std::optional<std::string> lost_learner_;
};

/// The judges of the controller as one: called around everything that it does.
class Judge {
 public:
  explicit Judge(const Breach& breach) : breach_(breach), group_(seen_, breach), actors_(seen_, breach) {}

  void begins(const ControllerService& service, const Membership& membership, std::uint64_t term,
              std::int64_t resume_step, std::string checkpoints_folder,
              std::function<bool(std::uint64_t fence)> is_recorded);
  /// A node is let in before the job is started.
  void lets_in(const std::string& from, const Join& join, SimTime now);
  void starts(SimTime now);
  void hears(const std::string& from, const Message& message, SimTime now);
  void ticks(SimTime now);
  void is_told_to_end(SimTime now) { seen_.now = awake_.at(now); }
  void sends(const std::string& to, const Message& message);
  /// Something is said to people, or written for them.
  void tells() { ++told_; }
  /// What the newest of these led to has happened.
  void settled();

  const ActorJudge& actors() const { return actors_; }
  const MembershipJudge& nodes() const { return *nodes_; }
  std::uint64_t fence() const { return group_.fence(); }
  const GroupJudge& group() const { return group_; }

 private:
  /// All that the job shows, but for times.
  std::string state() const;
  /// A message of another fence, or of a start that is not the newest, changes nothing.
  bool is_void(const std::string& from, const Message& message) const;

  const Breach breach_;
  Seen seen_;
  AwakeTime awake_;
  std::unique_ptr<MembershipJudge> nodes_;
  GroupJudge group_;
  ActorJudge actors_;
  std::int64_t sent_ = 0, told_ = 0;
  bool has_ticked_ = false;
  // A message that changes nothing, in words, and state() before it.
  std::optional<std::pair<std::string, std::string>> void_;
};

/// The node's side of membership: what it may take itself for.
class NodeJudge {
 public:
  explicit NodeJudge(Breach breach) : breach_(std::move(breach)) {}
  void hears(const Message& message, SimTime now);
  /// The node has looked at its clock and sent `message`.
  void turned(const NodeMembership& membership, const std::optional<Message>& message, SimTime now);
  /// When the node last sent a beat or a request.
  SimTime last_sent() const { return last_sent_; }

 private:
  const Breach breach_;
  AwakeTime awake_;
  Millis lease_{10'000}, orphan_{60'000};
  SimTime last_heard_{}, last_sent_{};
  std::uint64_t term_ = 0;
  bool is_member_ = false, was_given_up_ = false, has_other_term_ = false, was_refused_ = false;
};

}  // namespace troupe::testing
