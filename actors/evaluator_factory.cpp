#include "actors/evaluator_factory.h"

#include <algorithm>
#include <utility>

#include "actors/consumer_channels.h"
#include "actors/planned_device.h"
#include "workers/evaluator/evaluator_role.h"

namespace troupe::actors {

Result<std::unique_ptr<Role>> make_evaluator(const RoleContext& context, const ActorIdentity& identity, Outbox outbox) {
  const JobConfig& job = context.config;
  TROUPE_ASSIGN(auto device, open_planned_device(context.plan, identity.actor));
  TROUPE_ASSIGN(Agent agent, make_agent(job, context.env_spec, std::move(device)));
  TROUPE_ASSIGN(auto weights, weight_channels(context, identity));
  EvaluatorRole::Setup setup{.identity = identity,
                             .config = job,
                             .agent = std::move(agent),
                             .weights = std::move(weights),
                             .folder = context.runtime_dir};
  // env.bridge.bind is the address of the simulator: the evaluator starts Python workers of its own
  auto& bridge = setup.config.env.bridge;
  if (!std::exchange(bridge.bind, "").empty()) bridge.workers = std::max<std::int64_t>(1, bridge.workers);
  if (const PlannedActor* self = find_actor(context.plan, identity.actor))
    setup.threads = std::max<std::int64_t>(1, static_cast<std::int64_t>(self->cpus));
  return make_role_of<EvaluatorRole>(std::move(setup), context.loop, std::move(outbox));
}

}  // namespace troupe::actors
