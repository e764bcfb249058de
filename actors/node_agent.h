#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "actors/actor_process.h"
#include "actors/local_actors.h"
#include "actors/role_factory.h"
#include "workers/node/hosted_actors.h"

namespace troupe::actors {

/// The node agent of this process (NodeRole) and the actors that live here beside it (isolation thread). The destructor
/// ends the agent first, and with it every host process that it started, then those actors.
class NodeAgent {
 public:
  /// Spawns the agent under the name of `node` ("node/0#0"). Its host processes dial `endpoint` and read the job file
  /// `config` and the plan context.run_dir/plan.json; arenas are exchanged at the ArenaDesk that the caller has opened
  /// in context.runtime_dir; `hosts` learns which process is which actor. `on_failure` is called at most once, on the
  /// agent's thread, with a sentence that begins with the node's name, when an exception has ended the agent. `process`
  /// is not owned and outlives it; context.loop is set here.
  NodeAgent(Process& process, const RoleContext& context, const ActorIdentity& node, const std::string& endpoint,
            const std::string& config, std::shared_ptr<HostBook> hosts,
            std::function<void(const std::string& why)> on_failure);

  /// What runs here now: "decoder/0#1".
  std::vector<std::string> hosted() const { return hosted_->list(); }

 private:
  const std::shared_ptr<HostedActors> hosted_ = std::make_shared<HostedActors>();
  LocalActors actors_, node_;
};

}  // namespace troupe::actors
