#include "actors/learner_factory.h"

#include <fmt/format.h>

#include <algorithm>

#include "actors/consumer_channels.h"
#include "actors/consumer_dial.h"
#include "actors/planned_device.h"
#include "placement/planner.h"
#include "placement/roles.h"
#include "placement/scale.h"
#include "workers/inference/agent/agent.h"
#include "workers/learner/imitation/imitation_task.h"
#include "workers/learner/rl/rl_trainer.h"
#include "workers/learner/role.h"
#include "workers/learner/sft_task.h"
#include "workers/learner/sft_trainer.h"

namespace troupe::actors {

namespace {

Feed::Options sft_feed_options(const RoleContext& context, std::int64_t rank) {
  const BatchPlan& batch = context.plan.batch;
  Feed::Options options;
  options.order = {
      .global_batch = batch.global, .micro_batch = batch.micro, .accumulation = batch.accumulation, .rank = rank};
  options.total_steps = context.config.training.steps;
  options.item_deadline = to_milliseconds(context.config.data.decode_deadline);
  return options;
}

Result<std::unique_ptr<TrainingTask>> sft_task(const JobConfig& job, const EnvSpec& env) {
  if (!is_imitation(job)) {
    TROUPE_ASSIGN(auto task, SftTask::make(job));
    return std::unique_ptr<TrainingTask>(std::move(task));
  }
  TROUPE_ASSIGN(auto task, ImitationTask::make(job, env));
  return std::unique_ptr<TrainingTask>(std::move(task));
}

LearnerRole::MakeTrainer sft_trainer(const RoleContext& context, const LearnerSetup& setup) {
  return [setup, batch = context.plan.batch, env = context.env_spec](Feed& feed) -> std::unique_ptr<Trainer> {
    auto task = sft_task(setup.config, env);
    if (!task) throw std::runtime_error(task.error().message());
    return std::make_unique<SftTrainer>(setup, batch, std::move(*task), feed);
  };
}

Result<LearnerRole::MakeTrainer> rl_trainer(const RoleContext& context, const LearnerSetup& learner) {
  TROUPE_ASSIGN(Agent agent, make_agent(context.config, context.env_spec));
  TROUPE_ASSIGN(auto dial, consumer_dial(context));
  const RlTrainerSetup setup{.learner = learner, .agent = std::move(agent), .dial = std::move(dial)};
  return LearnerRole::MakeTrainer([setup](Feed& feed) { return make_rl_trainer(setup, feed); });
}

}  // namespace

Result<std::unique_ptr<Role>> make_learner(const RoleContext& context, const ActorIdentity& identity, Outbox outbox) {
  const JobConfig& config = context.config;
  const PlannedActor* self = find_actor(context.plan, identity.actor);
  if (self == nullptr) return Error{Errc::not_found, fmt::format("{} is not in the plan", identity.actor)};
  const bool rl = config.job.kind == JobKind::rl;
  const std::string feeder = feeder_role(config);
  TROUPE_ASSIGN(auto channels,
                consumer_channels(context, identity, "", context.plan.feed_slots, context.plan.sample_bytes,
                                  are_threads(context.plan, identity.actor, feeder)));
  TROUPE_ASSIGN(auto device, open_planned_device(context.plan, identity.actor));
  const LearnerSetup learner{.config = decided_job(config, context.plan),
                             .actor = identity.actor,
                             .incarnation = identity.incarnation,
                             .run_dir = context.run_dir,
                             .runtime_dir = context.runtime_dir,
                             .threads = static_cast<int>(self->threads),
                             .device = std::move(device)};
  LearnerRole::Setup setup{.identity = identity,
                           .rank = learner,
                           .feed = rl ? rl_feed_options(config, self->process_rank, context.plan.batch.data_ranks,
                                                        pool_size(context.plan, feeder))
                                      : sft_feed_options(context, self->process_rank),
                           .deadline_key = rl ? "training.step_timeout_s" : "data.decode_deadline_s",
                           .channels = std::move(channels)};
  TROUPE_ASSIGN(auto make_trainer, rl ? rl_trainer(context, learner) : sft_trainer(context, learner));
  return make_role_of<LearnerRole>(std::move(setup), context.loop, std::move(make_trainer), std::move(outbox));
}

}  // namespace troupe::actors
