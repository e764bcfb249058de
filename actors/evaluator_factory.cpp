#include "actors/evaluator_factory.h"

#include <algorithm>
#include <utility>

#include "actors/learner_factory.h"
#include "workers/evaluator/evaluator_role.h"

namespace troupe::actors {

Result<std::unique_ptr<Role>> make_evaluator(const RoleContext& context, const ActorIdentity& identity, Outbox outbox) {
  const JobConfig& job = context.config;
  TROUPE_ASSIGN(Agent agent, make_agent(job, context.env_spec));
  TROUPE_ASSIGN(auto weights,
                consumer_channels(context, identity, ".weights", 2 * context.plan.batch.data_ranks + 2,
                                  job.rollout.bucket_bytes, are_threads(context.plan, identity.actor, "learner")));
  EvaluatorRole::Setup setup{.identity = identity,
                             .config = job,
                             .agent = std::move(agent),
                             .weights = std::move(weights),
                             .folder = context.runtime_dir};
  // the simulator's address and the workers that come to it are the simulator's
  auto& bridge = setup.config.env.bridge;
  if (!std::exchange(bridge.bind, "").empty()) bridge.workers = std::max<std::int64_t>(1, bridge.workers);
  for (const PlannedActor& actor : context.plan.actors) {
    if (actor.name == identity.actor) setup.threads = std::max<std::int64_t>(1, static_cast<std::int64_t>(actor.cpus));
  }
  return make_role_of<EvaluatorRole>(std::move(setup), context.loop, std::move(outbox));
}

}  // namespace troupe::actors
