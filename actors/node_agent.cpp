#include "actors/node_agent.h"

#include "workers/node/node_role.h"

namespace troupe::actors {

NodeAgent::NodeAgent(Process& process, const RoleContext& context, const ActorIdentity& node,
                     const std::string& endpoint, const std::string& config, std::shared_ptr<HostBook> hosts,
                     std::function<void(const std::string& why)> on_failure)
    : actors_(*process.system, *process.bridge, role_maker(context, *process.loop)),
      node_(*process.system, *process.bridge,
            [this, launch = NodeRole::Launch{.executable = own_executable(),
                                             .endpoint = endpoint,
                                             .config = config,
                                             .plan = context.run_dir + "/plan.json",
                                             .run_dir = context.run_dir,
                                             .runtime_dir = context.runtime_dir,
                                             .data_host = context.data_host,
                                             .environment = {},
                                             .hosts = std::move(hosts)}](const ActorIdentity&, const std::string&,
                                                                         Outbox outbox) {
              return make_role_of<NodeRole>(
                  launch, hosted_,
                  [this](const ActorIdentity& id, const std::string& role, NodeRole::OnEnd on_end) {
                    actors_.spawn(id, role, std::move(on_end));
                  },
                  [this](const std::string& instance) { actors_.stop(instance); }, std::move(outbox));
            }) {
  node_.spawn(node, "node", [node = node.actor, on_failure = std::move(on_failure)](const std::string& failure) {
    if (!failure.empty()) on_failure(node + " " + failure);
  });
}

}  // namespace troupe::actors
