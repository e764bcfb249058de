#include "workers/learner/rl/rl_trainer.h"

#include <fmt/format.h>

#include <algorithm>

#include "model/optim/lr_schedule.h"
#include "placement/evaluation.h"
#include "workers/learner/engine_options.h"
#include "workers/learner/rl/off_policy_trainer.h"
#include "workers/learner/rl/on_policy_trainer.h"

namespace troupe::workers {

namespace {
/// The weights that rollout and evaluation act with (ema.publish).
StateKind acting_weights(const JobConfig& job) { return job.ema.publish ? StateKind::ema : StateKind::master; }
}  // namespace

RlTrainer::RlTrainer(const RlTrainerSetup& setup, Feed& feed)
    : setup_(setup.learner),
      agent_(setup.agent),
      feed_(feed),
      collector_(rl_collector_options(setup_.config),
                 make_trajectory_layout(setup_.config, agent_.spec(), *agent_.policy), feed),
      publisher_(*agent_.policy,
                 {.producer = fmt::format("{}#{}", setup_.actor, setup_.incarnation),
                  // as many versions as rollouts may still ask for
                  .keep = static_cast<std::size_t>(setup_.config.rollout.staleness + 1)},
                 setup.dial) {}

EngineOptions RlTrainer::engine_options() const { return rl_engine_options(setup_.config, *agent_.policy); }

void RlTrainer::begin_at(std::int64_t version) {
  const GroupPlan& plan = session_.plan;
  publisher_.begin(plan.fence, static_cast<int>(plan.world), static_cast<int>(plan.rank));
  publish(version, plan.resume_step == setup_.config.training.steps);
  collector_.begin(session_, version);
}

void RlTrainer::publish(std::int64_t version) {
  const std::int64_t per_step = versions_per_step(setup_.config);
  publish(version, version % per_step == 0 && is_evaluated(setup_.config, version / per_step));
}

void RlTrainer::publish(std::int64_t version, bool evaluated) {
  session_.engine->publish(agent_.policy->acting_units(), acting_weights(setup_.config), shards_);
  const std::vector<std::span<const float>> shards(shards_.begin(), shards_.end());
  publisher_.publish(version, shards, session_.plan.rank == 0 ? &normaliser() : nullptr, evaluated);
}

std::unique_ptr<Trainer> make_rl_trainer(const RlTrainerSetup& setup, Feed& feed) {
  if (is_off_policy(setup.learner.config)) return std::make_unique<OffPolicyTrainer>(setup, feed);
  return std::make_unique<OnPolicyTrainer>(setup, feed);
}

namespace {
/// Rollout workers watch every step of their simulators, and making environments may take a minute; an item that stands
/// still for longer than the learner waits for a batch has a rollout worker that is stuck itself.
std::chrono::milliseconds item_deadline(const JobConfig& job) {
  return to_milliseconds(std::max(job.training.step_timeout, job.env.step_timeout + Seconds(90)));
}
}  // namespace

Feed::Options rl_feed_options(const JobConfig& job, std::int64_t rank, std::int64_t world,
                              std::int64_t rollout_workers) {
  const RlShape shape = rl_shape(job);
  Feed::Options options;
  options.order = {.global_batch = shape.blocks, .micro_batch = 1, .accumulation = shape.blocks / world, .rank = rank};
  options.total_steps = job.training.steps * shape.rounds_per_step;
  options.item_deadline = item_deadline(job);
  options.lanes = shape.blocks;
  options.await_producers = job.algorithm.deterministic ? rollout_workers : 1;
  return options;
}

RoundCollector::Options rl_collector_options(const JobConfig& job) {
  const RlShape shape = rl_shape(job);
  return {.shape = shape,
          .staleness = job.rollout.staleness,
          .exact = job.rollout.staleness == 0 || job.algorithm.deterministic,
          .rounds_per_version = is_off_policy(job) ? 1 : shape.rounds_per_step,
          .total_rounds = shape.rounds_per_step * job.training.steps,
          .item_deadline = item_deadline(job)};
}

EngineOptions rl_engine_options(const JobConfig& job, const PolicyNet& policy) {
  EngineOptions options = job_engine_options(job, "");
  options.lazy_optimizer = false;
  options.whole_gradients = false;
  if (!learns_dreamzero(job)) {
    options.recompute = {RecomputeLevel::none};
    options.param_slots = options.grad_slots = static_cast<int>(policy.units().size());
  }
  options.explicit_backward = job.algorithm.explicit_backward;
  const AlgorithmConfig& algorithm = job.algorithm;
  const std::vector<UnitSpec> units = state_units(policy.units());
  const auto own = [&](const char* group, double clip) {
    const bool known = std::any_of(units.begin(), units.end(),
                                   [&](const UnitSpec& unit) { return unit.trainable && unit.group == group; });
    if (known)
      options.groups[group] =
          GroupOptions{.adamw = options.adamw, .clip_grad_norm = clip > 0 ? clip : job.training.clip_grad_norm};
  };
  // Off-policy phases commit one group at a time, so each has its norm; on-policy actor and critic share theirs
  // unless told otherwise.
  if (is_off_policy(job) || algorithm.actor_clip_norm > 0 || algorithm.critic_clip_norm > 0) {
    own("actor", algorithm.actor_clip_norm);
    own("critic", algorithm.critic_clip_norm);
    own("temperature", 0);
  }
  return options;
}

GroupRates configured_rates(const JobConfig& job) {
  const auto rate = [&](double own) { return own > 0 ? own : job.optimizer.lr; };
  return {{"actor", rate(0)},
          {"critic", rate(job.algorithm.value_lr)},
          {"temperature", rate(job.algorithm.temperature_lr)}};
}

GroupRates rl_rates(const JobConfig& job, std::int64_t step) {
  const std::int64_t total = job.lr_scheduler.total_steps > 0 ? job.lr_scheduler.total_steps : job.training.steps;
  double factor = lr_at(job.optimizer, job.lr_scheduler, step, total) / (job.optimizer.lr > 0 ? job.optimizer.lr : 1);
  if (job.algorithm.anneal_lr)
    factor *= 1.0 - static_cast<double>(step) / static_cast<double>(std::max<std::int64_t>(1, total));
  GroupRates rates = configured_rates(job);
  for (auto& [group, rate] : rates) rate *= factor;
  return rates;
}

}  // namespace troupe::workers
