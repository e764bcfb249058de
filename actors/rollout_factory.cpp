#include "actors/rollout_factory.h"

#include <fmt/format.h>

#include <algorithm>

#include "actors/consumer_channels.h"
#include "actors/consumer_dial.h"
#include "actors/planned_device.h"
#include "env/env_spec_json.h"
#include "placement/rl_shape.h"
#include "placement/roles.h"
#include "placement/scale.h"
#include "workers/inference/agent/agent.h"
#include "workers/rollout/rollout_role.h"
#include "workers/rollout/simulator_role.h"

namespace troupe::actors {

namespace {

Result<std::shared_ptr<const EnvFactory>> described_factory(const RoleContext& context) {
  return make_described_env_factory(context.config.env, context.env_spec, "the run's " + std::string(kEnvSpecFile));
}

std::int64_t planned_threads(const RoleContext& context, const ActorIdentity& identity) {
  // one that was scaled up after this process's plan was written is not in it
  const PlannedActor* self = find_actor(context.plan, identity.actor);
  return self == nullptr ? 1 : std::max<std::int64_t>(1, static_cast<std::int64_t>(self->cpus));
}

std::int64_t stepping_threads(const RoleContext& context, const ActorIdentity& identity, const EnvFactory& envs) {
  if (context.config.env.threads > 0) return context.config.env.threads;
  // Threads wait for workers, one for each question under way: a worker that has answered for one block finds the
  // question of another. The number of workers that the user starts is unknown: then one thread per block.
  if (envs.waits_for_others()) {
    const std::int64_t workers = context.config.env.bridge.workers, blocks = rl_shape(context.config).blocks;
    return std::max<std::int64_t>(1, workers > 0 ? workers * std::min<std::int64_t>(blocks, 2) : blocks);
  }
  return planned_threads(context, identity);
}

}  // namespace

Result<std::unique_ptr<Role>> make_simulator(const RoleContext& context, const ActorIdentity& identity, Outbox outbox) {
  const JobConfig& job = context.config;
  TROUPE_ASSIGN(const auto factory, described_factory(context));
  const RlShape shape = rl_shape(job);
  TROUPE_ASSIGN(auto dial, consumer_dial(context, shape.blocks));
  SimulatorRole::Setup setup{.identity = identity,
                             .make_block = make_block_of(job, factory),
                             .layout = make_block_layout(factory->spec(), shape.envs, shape.chunk),
                             .actions = shape.envs * shape.chunk * factory->spec().action_numbers(),
                             .executor = {.threads = stepping_threads(context, identity, *factory)}};
  if (factory->waits_for_others()) {
    setup.is_making = [factory] { return factory->is_making(); };
    setup.tell_every = std::min(setup.tell_every, to_milliseconds(job.env.step_timeout) / 4);
  }
  return make_role_of<SimulatorRole>(std::move(setup), std::move(dial), std::move(outbox));
}

Result<std::unique_ptr<Role>> make_rollout(const RoleContext& context, const ActorIdentity& identity, Outbox outbox) {
  const JobConfig& job = context.config;
  TROUPE_ASSIGN(auto device, open_planned_device(context.plan, identity.actor));
  TROUPE_ASSIGN(const Agent agent, make_agent(job, context.env_spec, std::move(device)));
  const RlShape shape = rl_shape(job);
  std::vector<ChannelOptions> simulators;
  std::optional<InlineSimulators::Options> inline_simulators;
  if (steps_inline(job)) {
    TROUPE_ASSIGN(const auto factory, described_factory(context));
    TROUPE_TRY(check_inline(*factory));
    inline_simulators = {.owner = identity.instance(),
                         .make_block = make_block_of(job, factory),
                         .layout = make_block_layout(factory->spec(), shape.envs, shape.chunk),
                         .slots = context.plan.block_slots,
                         .threads = std::max<std::int64_t>(1, job.env.threads)};
  } else {
    TROUPE_ASSIGN(simulators,
                  consumer_channels(context, identity, "", context.plan.block_slots, context.plan.block_bytes,
                                    are_threads(context.plan, identity.actor, "env")));
  }
  TROUPE_ASSIGN(auto weights, weight_channels(context, identity));
  // A rollout worker may own every block of environments, and be asked for all that rollouts may be ahead.
  TROUPE_ASSIGN(auto dial, consumer_dial(context, shape.blocks * (job.rollout.staleness + 1) * shape.rounds_per_step));
  RolloutRole::Setup setup{.identity = identity,
                           .config = job,
                           .spec = agent.spec(),
                           .net = agent.policy,
                           .simulators = std::move(simulators),
                           .inline_simulators = std::move(inline_simulators),
                           .weights = std::move(weights),
                           .await_simulators = job.algorithm.deterministic ? pool_size(context.plan, "env") : 0,
                           .threads = planned_threads(context, identity)};
  return make_role_of<RolloutRole>(std::move(setup), context.loop, std::move(dial), std::move(outbox));
}

}  // namespace troupe::actors
