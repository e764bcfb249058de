#pragma once

#include <chrono>
#include <map>
#include <string>

#include "configs/cluster_config.h"
#include "workers/controller/actor_table.h"
#include "workers/controller/effects.h"

namespace troupe::workers {

/// How long an actor that is told to end may take before its process is killed.
inline constexpr std::chrono::milliseconds kStopGrace{5000};

/// Tells nodes to start and end actors, and writes it into the actor's record. Not thread-safe.
class ActorLauncher {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  /// `actors` and `effects` are not owned and outlive it.
  ActorLauncher(const ClusterConfig& cluster, ActorTable& actors, ControllerEffects& effects);

  /// Sends Spawn with the next incarnation, the planned cores and the environment of every node group.
  void spawn(ActorRecord& actor, TimePoint now);
  /// Sends Stop to an actor that is starting or up, which is stopping from now on; grace 0 kills at once. Nothing in
  /// any other state.
  void stop(ActorRecord& actor, std::chrono::milliseconds grace, const std::string& reason);
  /// Stops every actor of a role with kStopGrace; one that waits for its restart or for room is gone.
  void stop_all(const std::string& role, const std::string& reason);
  /// Kills those that were stopped and have not ended.
  void kill_stopping(const std::string& reason);
  /// Kills a start of an actor ("decoder/0#1") on a node that is not where the actor has its place.
  void end_left_over(std::int64_t node, const std::string& instance);
  /// Sends Stop and leaves the state as it is.
  void send_stop(const ActorRecord& actor, std::chrono::milliseconds grace, const std::string& reason);

 private:
  ActorTable& actors_;
  ControllerEffects& effects_;
  std::map<std::string, std::string> environment_;
};

}  // namespace troupe::workers
