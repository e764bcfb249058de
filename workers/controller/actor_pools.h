#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "comm/control/messages.h"
#include "configs/job_config.h"
#include "placement/plan.h"
#include "workers/controller/actor_launcher.h"
#include "workers/controller/state_db.h"

namespace troupe::workers {

/// The elastic pools and the nodes that carry them: changes their sizes, moves actors off lost nodes, and tells
/// producers and consumers of each other (Peers). Owns the plan in its newest revision. Not thread-safe.
class ActorPools {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  /// Nothing but the plan is owned; all others outlive it.
  ActorPools(const JobConfig& job, Plan plan, ActorTable& actors, ActorLauncher& launcher, StateDb& db,
             ControllerEffects& effects);

  const Plan& plan() const { return plan_; }
  /// Nodes by rank. A lost or suspect one offers nothing: it has neither cpus nor memory.
  ClusterSnapshot cluster() const;

  /// Spawns or stops actors of one pool and records a new revision of the plan. The text says what changes; code 0
  /// or 3 (infeasible: the text says why).
  Reply scale(const Scale& request, TimePoint now);
  /// An actor that was scaled away has ended.
  void removed(const std::string& actor);
  /// An actor survives SIGKILL: its pool does not count it any more, and its room is not given away before its
  /// end is confirmed.
  void give_up(ActorRecord& actor);
  /// The end of a start is confirmed.
  void ended(const std::string& instance) { given_up_.erase(instance); }
  /// Node `rank` joined (again) and hosts `running` ("decoder/0#1"): what of this, and of what it was told to start
  /// before it was lost, has its place elsewhere now is stopped, and what waited for room is started there.
  /// `is_new_process`: the one before has ended with all of that.
  void node_joined(const NodeSnapshot& node, std::int64_t rank, const std::vector<std::string>& running,
                   bool is_new_process, bool spawns, TimePoint now);
  /// Whether node `rank` is suspect: nothing new is placed there.
  void node_suspected(std::int64_t rank, bool is_suspect);
  /// Node `rank` is lost: its actors count as gone. Those of elastic roles are spawned where there is room (`spawns`:
  /// the job wants them), or wait for it; those that were scaled away are forgotten. Errors: unavailable (an actor of
  /// another role ran there).
  Result<void> node_lost(std::int64_t rank, bool spawns, std::uint64_t fence, TimePoint now);
  /// Starts what waits for room where there is some now. Errors: unavailable (for cluster.start_timeout_s no node has
  /// had room for any actor of a pool).
  Result<void> watch(TimePoint now);

  /// Tells an actor that came up, and those that feed it, which addresses to dial.
  void introduce(const ActorRecord& actor, std::uint64_t fence);
  /// Tells every producer that is up the addresses of its consumers, in flow order.
  void introduce_all(std::uint64_t fence);
  /// Tells consumers that a producer's exit is confirmed, so they may reuse its slots. `instance`: "decoder/0#1".
  /// `died`: the exit speaks against what it was making.
  void producer_gone(const std::string& role, const std::string& instance, std::uint64_t fence, bool died = false);
  /// Tells the learners' feeds that a producer survives SIGKILL: others make what it owes, in other slots.
  void producer_unkillable(const std::string& instance, std::uint64_t fence);

 private:
  /// Tells one producer the addresses of all its consumers: the local one on their node, else the one over zmq.
  void send_peers(const ActorRecord& producer, std::uint64_t fence);
  /// Spawns and stops what differs between plan_ and `next`.
  void change_actors(const Plan& next, TimePoint now);
  /// Starts the actors that wait for room where there is some. True: at least one.
  bool place_waiting(TimePoint now);
  /// Records the plan as it stands now under the next revision.
  void record_plan();

  const JobConfig& job_;
  Plan plan_;
  ClusterSnapshot cluster_;
  // Ranks of nodes that offer nothing now.
  std::set<std::int64_t> lost_, suspect_;
  // By rank of a lost node: starts that were placed there. A Spawn may still be on its way to it.
  std::map<std::int64_t, std::set<std::string>> left_behind_;
  // Starts that outlive SIGKILL, with the room that they hold.
  std::map<std::string, PlannedActor> given_up_;
  // Pools whose actors all wait for room, and since when.
  std::map<std::string, TimePoint> empty_since_;
  ActorTable& actors_;
  ActorLauncher& launcher_;
  StateDb& db_;
  ControllerEffects& effects_;
};

}  // namespace troupe::workers
