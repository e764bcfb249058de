#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "comm/control/actor_identity.h"
#include "comm/control/outbox.h"
#include "workers/node/host_book.h"
#include "workers/node/hosted_actors.h"
#include "workers/node/process.h"

namespace troupe::workers {

/// A node agent: starts the actors placed on it, each in its own process or as an actor of this one, and reports every
/// exit. It never decides where anything runs or whether it runs again: the controller does. Takes Spawn and Stop of
/// the controller alone; a Spawn whose actor is no ROLE/N, or whose variables may_set_for_hosts refuses, is answered as
/// one that could not start; one that comes twice starts one actor. Sends ActorExited to the controller, once for each
/// Spawn: when the process was waited for, when the actor of this process was destroyed, or with exit code 70 and the
/// reason when it could not start or broke; of an unkillable process before that, too. A Stop for an unknown instance
/// is answered with ActorExited too (code 0), so the controller never waits for it. Callbacks come on threads of
/// ProcessTable and of actors.
class NodeRole final {
 public:
  /// How host processes of this node are started.
  struct Launch {
    /// Path of this program.
    std::string executable;
    /// Where hosts dial their node.
    std::string endpoint;
    /// Resolved job file.
    std::string config;
    /// Plan file.
    std::string plan;
    std::string run_dir;
    std::string runtime_dir;
    /// Address at which other nodes' producers reach feeds; empty: this machine only.
    std::string data_host;
    /// Variables for every host; those of Spawn are added where they are not named here, and OMP_NUM_THREADS is set.
    std::map<std::string, std::string> environment;
    /// Learns which process is which actor; null: nobody asks.
    std::shared_ptr<HostBook> hosts = {};
  };
  /// Called once when an actor of this process has ended; `failure` says why it could not start or what broke it,
  /// empty: it ended in order.
  using OnEnd = std::function<void(const std::string& failure)>;
  using SpawnLocal = std::function<void(const ActorIdentity& identity, const std::string& role, OnEnd on_end)>;
  using StopLocal = std::function<void(const std::string& instance)>;

  /// `hosted` lists what runs here, for whoever else wants to know.
  NodeRole(Launch launch, std::shared_ptr<HostedActors> hosted, SpawnLocal spawn_local, StopLocal stop_local,
           Outbox outbox);
  /// Ends every process it started.
  ~NodeRole();

  /// Nothing: the table of child processes is made with the first of them.
  void start();
  void handle(const std::string& from, const Message& message);

 private:
  void spawn(const Spawn& request);
  /// Errors: invalid_argument (the name would leave its folder, or a variable says which code is loaded).
  static Result<void> check(const Spawn& request);
  void spawn_process(const Spawn& request);
  ProcessTable& processes();
  void stop(const Stop& request);

  const Launch launch_;
  const std::shared_ptr<HostedActors> hosted_;
  const SpawnLocal spawn_local_;
  const StopLocal stop_local_;
  const Outbox outbox_;
  std::unique_ptr<ProcessTable> processes_;
};

}  // namespace troupe::workers
