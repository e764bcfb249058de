#include "workers/learner/rl/on_policy_trainer.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/fault.h"
#include "base/stopwatch.h"
#include "base/trace.h"
#include "kernels/threads.h"
#include "model/loss/policy_gradient_loss.h"
#include "model/policy/flow_step.h"
#include "workers/learner/rl/initial_policy.h"
#include "workers/learner/rl/present_critic.h"
#include "workers/rollout/trainer_state.h"

namespace troupe::workers {

OnPolicyTrainer::OnPolicyTrainer(const RlTrainerSetup& setup, Feed& feed)
    : RlTrainer(setup, feed),
      objective_(agent_.policy->objective("policy")),
      statistics_(setup_.config.rollout, agent_.shape.state_dim) {}

Result<void> OnPolicyTrainer::begin(const TrainerSession& session) {
  session_ = session;
  statistics_.clear();
  TROUPE_ASSIGN(RlTrainerState restored, RlTrainerState::parse(session.state));
  if (restored.present) {
    statistics_.restore(std::move(restored.normaliser));
  } else {
    TROUPE_ASSIGN(auto initial, initial_statistics(setup_.config, statistics_.state()));
    statistics_.restore(std::move(initial));
  }
  optimizer_steps_ = restored.optimizer_steps;
  env_steps_ = restored.env_steps;
  divergence_.reset();
  if (setup_.config.algorithm.policy_gradient.kl_beta > 0 && reference_.empty()) {
    TROUPE_ASSIGN(reference_, initial_policy(setup_.config, *agent_.policy));
  }
  begin_at(session.plan.resume_step);
  return {};
}

std::string OnPolicyTrainer::state() const {
  return RlTrainerState{
      .present = true, .normaliser = statistics_.state(), .optimizer_steps = optimizer_steps_, .env_steps = env_steps_}
      .text();
}

Result<RowInputs> OnPolicyTrainer::row_inputs(std::int64_t step, RolloutBatch& batch) {
  RowInputs inputs{.reward = statistics_.scale_reward(batch.reward), .trained_version = step + 1};
  const bool weighs = setup_.config.algorithm.traits().advantages == AdvantageSource::trace;
  if (!weighs && reference_.empty()) return inputs;
  const Batch stored = density_inputs(batch, flow_noise_level(setup_.config.policy.flow, step));
  if (weighs) {
    TROUPE_ASSIGN(const auto views, session_.engine->gather_views(agent_.policy->acting_units()));
    inputs.current_logp = agent_.policy->logp(views, stored);
    value_again(batch, *agent_.policy, views);
  }
  if (!reference_.empty()) inputs.reference_logp = agent_.policy->logp(reference_, stored);
  return inputs;
}

Result<RolloutRows> OnPolicyTrainer::collect(std::int64_t step, StepOutcome& outcome) {
  const Span span("collect");
  const RlShape& shape = collector_.shape();
  const auto begin = std::chrono::steady_clock::now();
  std::vector<CollectedItem> items;
  for (std::int64_t round = step * shape.rounds_per_step; round < (step + 1) * shape.rounds_per_step; ++round) {
    TROUPE_ASSIGN(auto taken, collector_.take(round, outcome.stall_seconds));
    for (CollectedItem& item : taken) {
      outcome.consumed.push_back({.position = item.position, .xxh3 = item.xxh3, .void_reason = ""});
      items.push_back(std::move(item));
    }
  }
  outcome.metrics["time/generate_rollouts"] = seconds_since(begin);
  TROUPE_TRY(fault_point("learner.step", fmt::format("{}#{} step {}", setup_.actor, setup_.incarnation, step)));
  const auto computing = std::chrono::steady_clock::now();
  EpisodeSummary episodes;
  episodes.add(collector_.layout(), items);
  TROUPE_TRY(episodes.reduce(*session_.group));
  outcome.metrics.merge(episodes.metrics(agent_.spec().has_success));
  env_steps_ += episodes.env_steps();
  outcome.metrics["env/steps"] = static_cast<double>(episodes.env_steps());
  outcome.metrics["env/total_steps"] = static_cast<double>(env_steps_);
  TROUPE_TRY(statistics_.merge(collector_.layout(), items, step * shape.items_per_step(), shape.items_per_step(),
                               *session_.group));
  RolloutBatch batch = make_rollout_batch(collector_.layout(), *agent_.policy, agent_.shape, items);
  TROUPE_ASSIGN(const RowInputs inputs, row_inputs(step, batch));
  RolloutRows rows = make_rollout_rows(setup_.config, batch, inputs);
  TROUPE_TRY(describe_rollout(rows, batch, outcome));
  TROUPE_TRY(normalise_advantages(rows));
  outcome.metrics["time/cal_adv_and_returns"] = seconds_since(computing);
  return rows;
}

Result<StepOutcome> OnPolicyTrainer::step(std::int64_t step, bool finish_requested) {
  StepOutcome outcome;
  TROUPE_ASSIGN(const RolloutRows rows, collect(step, outcome));
  const auto begin = std::chrono::steady_clock::now();
  const Span span("update");
  Result<Progress> updated = Progress();
  // minibatches follow one another within microseconds: the other threads stand by meanwhile
  const int threads = objective_->manual_backward() == nullptr ? 1 : kernels::num_threads();
  kernels::with_own_team(threads, [&] { updated = update(step, rows); });
  TROUPE_ASSIGN(const Progress progress, std::move(updated));
  outcome.compute_seconds = seconds_since(begin);
  outcome.metrics["time/actor_training"] = outcome.compute_seconds;
  for (const auto& [name, sum] : progress.metrics) {
    const bool is_count = name == "nonfinite_samples";
    outcome.metrics["train/" + name] =
        is_count ? sum : sum / static_cast<double>(std::max<std::int64_t>(1, progress.minibatches - progress.skipped));
  }
  const auto mean = [&](const char* name) { return outcome.metrics[fmt::format("train/critic/{}", name)]; };
  if (outcome.metrics.count("train/critic/return_mean") != 0) {
    outcome.metrics["train/critic/explained_variance"] =
        explained_variance(mean("return_mean"), mean("return_sq_mean"), mean("error_mean"), mean("error_sq_mean"));
  }
  for (const auto& [group, rate] : rl_rates(setup_.config, step)) {
    if (group != "temperature" && (group != "critic" || setup_.config.algorithm.traits().has_critic()))
      outcome.metrics[fmt::format("train/{}/lr", group)] = rate;
  }
  outcome.metrics["train/minibatches"] = static_cast<double>(progress.minibatches);
  outcome.metrics["train/skipped_minibatches"] = static_cast<double>(progress.skipped);
  outcome.applied = progress.minibatches > progress.skipped;
  double shared[] = {finish_requested ? 1.0 : 0.0, outcome.stall_seconds};
  TROUPE_TRY(session_.group->all_reduce_max(shared));
  outcome.finish = shared[0] > 0;
  outcome.stall_seconds = shared[1];
  // Sums over ranks already, or the same on all.
  if (session_.plan.rank == 0) outcome.counters = {{"env_steps", env_steps_}, {"optimizer_steps", optimizer_steps_}};
  return outcome;
}

void OnPolicyTrainer::committed(std::int64_t step, StepOutcome& outcome) {
  {
    const ScopedSeconds publishing(outcome.metrics["time/publish"]);
    publish(step + 1);
  }
  collector_.allow(step + 1);
}

}  // namespace troupe::workers
