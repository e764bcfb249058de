#include "workers/learner/rl/rollout_rows.h"

#include <ATen/ATen.h>

#include <cmath>

#include "model/loss/gae.h"
#include "model/loss/grpo.h"
#include "model/loss/rl_keys.h"
#include "model/loss/vtrace.h"
#include "placement/rl_shape.h"

namespace troupe::workers {

namespace {

/// Flags of a rollout: row 0 is the state before the first call, which no episode has ended in.
at::Tensor with_first_row(const at::Tensor& flags_TBK) {
  return at::cat({at::zeros_like(flags_TBK[0]).unsqueeze(0), flags_TBK}, 0);
}

Bootstrap bootstrap_of(const std::string& name) {
  return name == "standard" ? Bootstrap::standard : name == "always" ? Bootstrap::always : Bootstrap::never;
}

bool per_action(const JobConfig& job) { return job.algorithm.policy_gradient.reward_level == "action"; }

/// Per chunk: whether any of its actions counts.
at::Tensor cells_of(const JobConfig& job, const at::Tensor& mask_TBK) {
  return per_action(job) ? mask_TBK : mask_TBK.any(-1, true);
}

/// Without the end of every chunk that env.exec_steps never plays: it is no part of an episode, and no time passes in
/// it.
RolloutBatch played_part(const JobConfig& job, RolloutBatch batch) {
  const std::int64_t played = rl_shape(job).exec_steps;
  for (at::Tensor* x : {&batch.reward, &batch.terminated, &batch.truncated, &batch.mask}) *x = x->narrow(-1, 0, played);
  if (per_action(job)) batch.value = batch.value.narrow(-1, 0, played);
  return batch;
}

/// Rewards with the final observations' values at the ends of episodes. A lost call ends its trajectory without a
/// value: its reward becomes the value before it, so that nothing flows back through it.
at::Tensor bootstrapped(const JobConfig& job, const RolloutBatch& batch, const at::Tensor& reward) {
  at::Tensor out = reward;
  if (job.env.reset_mode == "auto") {
    out = add_bootstrap(out, batch.terminated, batch.truncated, batch.final_value.narrow(-1, 0, 1), job.algorithm.gamma,
                        bootstrap_of(job.algorithm.policy_gradient.bootstrap), job.algorithm.parity);
  }
  if (!batch.lost.any().item<bool>()) return out;
  at::Tensor patched = out.clone();
  const at::Tensor before = batch.value.narrow(0, 0, batch.calls()).narrow(-1, 0, 1);
  at::Tensor replacement = at::zeros_like(patched);
  replacement.narrow(-1, 0, 1).copy_(before);
  return at::where(batch.lost.unsqueeze(-1), replacement, patched);
}

Advantages critic_advantages(const JobConfig& job, const RolloutBatch& whole, const at::Tensor& reward) {
  const RolloutBatch batch = played_part(job, whole);
  const std::int64_t played = batch.reward.size(-1), rest = whole.reward.size(-1) - played;
  const at::Tensor dones =
      with_first_row(batch.terminated.logical_or(batch.truncated).logical_or(batch.lost.unsqueeze(-1)));
  const GaeOptions options{.gamma = job.algorithm.gamma,
                           .lambda = job.algorithm.policy_gradient.gae_lambda,
                           .per_action = per_action(job),
                           .semi_mdp = job.algorithm.discount == "semi_mdp"};
  Advantages result = rollout_gae(bootstrapped(job, batch, reward.narrow(-1, 0, played)), batch.value, dones, options);
  if (!per_action(job) || rest == 0) return result;
  return {at::constant_pad_nd(result.advantages, {0, rest}), at::constant_pad_nd(result.returns, {0, rest})};
}

/// [T,B]: log-ratio of what every call did. Actions that were drawn and not executed have no part in it.
at::Tensor executed_log_ratio(const RolloutBatch& batch, const at::Tensor& current_logp) {
  const at::Tensor& mask = batch.mask;
  const at::Tensor each =
      (current_logp - batch.logp.flatten(0, 1)).reshape({mask.size(0), mask.size(1), mask.size(2), -1});
  return at::where(mask.unsqueeze(-1), each, at::zeros_like(each)).sum(at::IntArrayRef({2, 3}));
}

Advantages vtrace_advantages(const JobConfig& job, const RolloutBatch& whole, const RowInputs& inputs) {
  const RolloutBatch batch = played_part(job, whole);
  const std::int64_t played = batch.reward.size(-1);
  const PolicyGradientConfig& config = job.algorithm.policy_gradient;
  const bool semi_mdp = job.algorithm.discount == "semi_mdp";
  const at::Tensor reward = chunk_rewards(bootstrapped(job, batch, inputs.reward.narrow(-1, 0, played)),
                                          semi_mdp ? job.algorithm.gamma : 1.0);
  const at::Tensor ended = batch.terminated.logical_or(batch.truncated).logical_or(batch.lost.unsqueeze(-1)).any(-1);
  const at::Tensor log_ratio = executed_log_ratio(whole, inputs.current_logp);
  const VtraceOptions options{
      .gamma = semi_mdp ? std::pow(job.algorithm.gamma, static_cast<double>(played)) : job.algorithm.gamma,
      .lambda = config.gae_lambda,
      .rho_bar = config.rho_bar,
      .c_bar = config.c_bar};
  const VtraceTargets targets = vtrace(reward, batch.value.select(-1, 0), with_first_row(ended), log_ratio, options);
  return {targets.advantages.unsqueeze(-1), targets.values.unsqueeze(-1)};
}

/// [B] bool: environments of groups without a member that was lost. What a lost one returned says nothing about its
/// actions, and the others would be compared with it.
at::Tensor whole_groups(const RolloutBatch& batch, std::int64_t group_size) {
  const at::Tensor played = batch.mask.any(-1).any(0);  // false: lost before its first step
  return played.logical_and(batch.lost.any(0).logical_not())
      .view({-1, group_size})
      .all(1)
      .repeat_interleave(group_size);
}

/// Group-relative advantages; `cells` loses the groups that lost a member, and those that the filter drops.
Advantages group_advantages(const JobConfig& job, const RolloutBatch& batch, const at::Tensor& reward,
                            at::Tensor& cells) {
  const PolicyGradientConfig& config = job.algorithm.policy_gradient;
  const at::Tensor dones = with_first_row(batch.terminated.logical_or(batch.truncated));
  const at::Tensor advantages = grpo_advantages(reward, dones, cells, job.env.group_size).to(at::kFloat);
  cells = cells.logical_and(whole_groups(batch, job.env.group_size).view({1, -1, 1}));
  if (config.filter_low < config.filter_high) {
    const at::Tensor kept = kept_groups(reward, cells, job.env.group_size, config.filter_low, config.filter_high);
    cells = cells.logical_and(kept.view({1, -1, 1}));
  }
  return {advantages, advantages};
}

at::Tensor rows_of(const at::Tensor& x_TB, std::int64_t calls) { return x_TB.narrow(0, 0, calls).flatten(0, 1); }

}  // namespace

RolloutRows make_rollout_rows(const JobConfig& job, const RolloutBatch& batch, const RowInputs& inputs) {
  const std::int64_t calls = batch.calls();
  at::Tensor cells = cells_of(job, batch.mask);
  const AlgorithmTraits traits = job.algorithm.traits();
  const bool traces = traits.advantages == AdvantageSource::trace;
  const Advantages result = traits.compares_groups() ? group_advantages(job, batch, inputs.reward, cells)
                            : traces                 ? vtrace_advantages(job, batch, inputs)
                                                     : critic_advantages(job, batch, inputs.reward);
  RolloutRows out;
  out.count = calls * batch.rows();
  out.rows = memory_inputs(batch);
  if (!out.rows.empty()) out.sequence = calls;
  out.valid_cells = rows_of(cells, calls);
  for (const auto& [key, tensor] : batch.observation) out.rows[key] = rows_of(tensor, calls);
  for (const auto& [key, tensor] : batch.extras) out.rows[rl_keys::kExtraPrefix + key] = rows_of(tensor, calls);
  out.rows[rl_keys::kAction] = rows_of(batch.action, calls);
  out.rows[rl_keys::kOldLogp] = rows_of(batch.logp, calls);
  out.rows[rl_keys::kAdvantage] = rows_of(result.advantages, calls);
  if (traits.has_critic()) {
    out.rows[rl_keys::kReturn] = rows_of(result.returns, calls);
    out.rows[rl_keys::kOldValue] = rows_of(batch.value, calls);
  }
  const at::Tensor counted = cells.expand_as(batch.mask).logical_and(batch.mask);
  out.rows[rl_keys::kMask] = rows_of(counted, calls);
  const at::Tensor steps = batch.mask.sum(at::IntArrayRef({0, 2}), /*keepdim=*/true)
                               .to(at::kFloat);  // [1,B,1]: of each environment's trajectory
  out.rows[rl_keys::kValidSteps] = rows_of(steps.expand({calls, batch.rows(), 1}).contiguous(), calls);
  out.rows[rl_keys::kVersion] = rows_of(batch.version.unsqueeze(-1), calls);
  if (inputs.reference_logp.defined()) out.rows[rl_keys::kReferenceLogp] = inputs.reference_logp;
  return out;
}

}  // namespace troupe::workers
