#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "workers/node/process.h"
#include "workers/role.h"

namespace troupe {

/// A node agent: starts the actors placed on it, each in its own process or as an actor of this one, and reports every exit.
/// It never decides where anything runs or whether it runs again: the controller does (design.md section 5).
class NodeRole final : public Role {
 public:
  /// How host processes of this node are started.
  struct Launch {
    std::string executable;  ///< this program
    std::string node;        ///< "node/0"
    std::string endpoint;    ///< where hosts dial their node
    std::string config;      ///< resolved job file
    std::string plan;        ///< plan file
    std::string run_dir;
    std::string runtime_dir;
    std::string data_host;  ///< address other nodes' decoders reach feeds by; empty: this machine only
    std::map<std::string, std::string> environment;
  };
  /// Called once when an actor of this process has ended; `failure` says why it could not start, empty: it ended in order.
  using OnEnd = std::function<void(const std::string& failure)>;
  using SpawnLocal = std::function<void(const RoleIdentity& identity, const std::string& role, OnEnd on_end)>;
  using StopLocal = std::function<void(const std::string& actor)>;

  NodeRole(Launch launch, SpawnLocal spawn_local, StopLocal stop_local, Outbox outbox);
  /// Ends every process it started.
  ~NodeRole() override;

  void start() override;
  void handle(const std::string& from, const Message& message) override;

 private:
  void spawn(const Spawn& request);
  void spawn_process(const Spawn& request);
  void report_failure(const Spawn& request, const std::string& why);
  void stop(const Stop& request);

  const Launch launch_;
  const SpawnLocal spawn_local_;
  const StopLocal stop_local_;
  const Outbox outbox_;
  std::map<std::string, bool> is_process_;  // by instance
  std::unique_ptr<ProcessTable> processes_;
};

}  // namespace troupe
