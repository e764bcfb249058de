#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "base/result.h"
#include "base/seconds.h"
#include "comm/control/messages.h"
#include "configs/cluster_config.h"
#include "workers/controller/actor_launcher.h"
#include "workers/node/restart_policy.h"

namespace troupe::workers {

/// What follows when an actor ends that the job still wants: a pause and a new start, or the end of the job
/// (docs/processes.md#restart). Kills actors that do not come up. Not thread-safe.
class ActorRestarts {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  /// `actors`, `launcher` and `effects` are not owned and outlive it.
  ActorRestarts(const ClusterConfig& cluster, ActorTable& actors, ActorLauncher& launcher, ControllerEffects& effects);

  /// The actor came up: its run counts from here.
  void came_up(const std::string& actor, TimePoint now) { policy_.on_start(actor, now); }
  /// Plans the next start of an actor whose exit is confirmed, and tells it as the event "restart". A learner's takes
  /// all ranks back to `committed_step`. Returns the event's text. Errors: failed_precondition (RestartPolicy gives
  /// the actor up; the text has the end of its stderr).
  Result<std::string> plan(ActorRecord& actor, const ActorExited& exit, std::int64_t committed_step, TimePoint now);
  /// The newest death of an actor was the fault of what it was making: RestartPolicy::forgive.
  void forgive(const std::string& actor) { policy_.forgive(actor); }
  /// Spawns those whose pause is over; kills those that did not come up within cluster.start_timeout_s.
  void tick(TimePoint now);
  /// Restarts of all actors since the controller's start.
  std::int64_t count() const { return count_; }

 private:
  RestartPolicy policy_;
  const Seconds start_timeout_;
  ActorTable& actors_;
  ActorLauncher& launcher_;
  ControllerEffects& effects_;
  std::int64_t count_ = 0;
};

}  // namespace troupe::workers
