// The update of one on-policy iteration: update_epochs passes over its rows in minibatches of global_batch_size, in an
// order drawn anew for each pass; passes end early above target_kl.
#include <ATen/ATen.h>
#include <fmt/format.h>

#include <numeric>

#include "base/hash.h"
#include "base/random.h"
#include "model/loss/advantage_norm.h"
#include "model/loss/rl_keys.h"
#include "model/policy/flow_step.h"
#include "workers/learner/rl/on_policy_trainer.h"

namespace troupe::workers {

namespace {

/// A permutation of 0 .. count - 1 that depends on (seed, step, update epoch, rank) alone.
at::Tensor permutation(std::int64_t count, std::uint64_t seed, std::int64_t step, std::int64_t epoch,
                       std::int64_t rank) {
  const std::int64_t key[] = {step, epoch, rank};
  CounterRng rng(seed, rng_stream::minibatch, xxh3_64(std::as_bytes(std::span(key))));
  at::Tensor order = at::arange(count, at::kLong);
  auto* values = order.mutable_data_ptr<std::int64_t>();
  for (std::int64_t i = count - 1; i > 0; --i)
    std::swap(values[i], values[rng.below(static_cast<std::uint32_t>(i + 1))]);
  return order;
}

/// Some of S sequences of `steps` rows, which lie side by side (row t * S + s): `take` cuts the axis of sequences, of
/// which it is told the number.
template <class Take>
at::Tensor take_sequences(const at::Tensor& rows, std::int64_t steps, const Take& take) {
  if (steps == 1) return take(rows, 0);
  return take(rows.unflatten(0, {steps, rows.size(0) / steps}), 1).flatten(0, 1);
}

/// The same of every tensor of a batch; memories have one row a sequence.
template <class Take>
Batch take_sequences(const Batch& rows, std::int64_t steps, const Take& take) {
  Batch taken;
  for (const auto& [name, tensor] : rows)
    taken[name] = take_sequences(tensor, name.starts_with(rl_keys::kMemoryPrefix) ? 1 : steps, take);
  return taken;
}

Result<AdvantageMoments> over_ranks(AdvantageMoments mine, Collective& group) {
  double sums[] = {mine.count, mine.sum, mine.sum_of_squares};
  TROUPE_TRY(group.all_reduce_sum(sums));
  return AdvantageMoments{.count = sums[0], .sum = sums[1], .sum_of_squares = sums[2]};
}

}  // namespace

Result<void> OnPolicyTrainer::normalise_advantages(RolloutRows& rows) const {
  const std::string& over = setup_.config.algorithm.policy_gradient.advantage_norm;
  // Group-relative advantages are normalised by their groups.
  if (over == "none" || over == "minibatch" || setup_.config.algorithm.traits().compares_groups()) return {};
  at::Tensor& advantage = rows.rows.at(rl_keys::kAdvantage);
  AdvantageMoments moments = advantage_moments(advantage, rows.valid_cells);
  if (over == "global") {
    TROUPE_ASSIGN(moments, over_ranks(moments, *session_.group));
  }
  advantage = normalise(advantage, moments);
  return {};
}

Result<void> OnPolicyTrainer::describe_rollout(const RolloutRows& rows, const RolloutBatch& batch,
                                               StepOutcome& outcome) const {
  const at::Tensor advantage = rows.rows.at(rl_keys::kAdvantage).masked_select(rows.valid_cells);
  const at::Tensor reward = batch.reward.masked_select(batch.mask);
  double sums[] = {static_cast<double>(advantage.numel()), advantage.sum().item<double>(),
                   static_cast<double>(reward.numel()), reward.sum().item<double>(), 0.0};
  if (rows.rows.count(rl_keys::kReturn) != 0) {
    sums[4] = rows.rows.at(rl_keys::kReturn).masked_select(rows.valid_cells).sum().item<double>();
  }
  double extremes[] = {advantage.numel() > 0 ? advantage.max().item<double>() : -1e300,
                       advantage.numel() > 0 ? -advantage.min().item<double>() : -1e300};
  TROUPE_TRY(session_.group->all_reduce_sum(sums));
  TROUPE_TRY(session_.group->all_reduce_max(extremes));
  if (sums[0] > 0) {
    outcome.metrics["rollout/advantages_mean"] = sums[1] / sums[0];
    outcome.metrics["rollout/advantages_max"] = extremes[0];
    outcome.metrics["rollout/advantages_min"] = -extremes[1];
    if (rows.rows.count(rl_keys::kReturn) != 0) outcome.metrics["rollout/returns_mean"] = sums[4] / sums[0];
  }
  if (sums[2] > 0) outcome.metrics["rollout/rewards"] = sums[3] / sums[2];
  return {};
}

Result<OnPolicyTrainer::Progress> OnPolicyTrainer::update(std::int64_t step, const RolloutRows& rows) {
  Progress progress;
  const std::int64_t epochs = setup_.config.algorithm.policy_gradient.update_epochs;
  for (std::int64_t epoch = 0; epoch < epochs && !progress.stopped; ++epoch)
    TROUPE_TRY(pass(step, epoch, rows, progress));
  return progress;
}

Result<void> OnPolicyTrainer::pass(std::int64_t step, std::int64_t epoch, const RolloutRows& rows, Progress& progress) {
  const std::int64_t share = setup_.config.training.global_batch_size / session_.plan.world;
  // a sequence is never cut: its memory follows from its first step
  const std::int64_t steps = rows.sequence;
  const at::Tensor order = permutation(rows.count / steps, static_cast<std::uint64_t>(setup_.config.job.seed), step,
                                       epoch, session_.plan.rank);
  double kl = 0;
  std::int64_t minibatches = 0;
  for (std::int64_t begin = 0; begin + share <= rows.count; begin += share) {
    const at::Tensor chosen = order.narrow(0, begin / steps, share / steps);
    const auto choose = [&](const at::Tensor& x, std::int64_t axis) { return x.index_select(axis, chosen); };
    const Batch minibatch = take_sequences(rows.rows, steps, choose);
    const std::int64_t skipped = progress.skipped;
    TROUPE_TRY(train_minibatch(step, minibatch, take_sequences(rows.valid_cells, steps, choose), steps, progress));
    if (progress.skipped > skipped) continue;
    kl += progress.last_kl;
    ++minibatches;
  }
  const double limit = setup_.config.algorithm.policy_gradient.target_kl;
  // the divergence is that of votes: every rank stops at the same pass
  progress.stopped = limit > 0 && minibatches > 0 && kl / static_cast<double>(minibatches) > limit;
  return {};
}

Result<Batch> OnPolicyTrainer::with_scale(Batch minibatch, const at::Tensor& valid_cells, std::int64_t parts) const {
  double counts[] = {valid_cells.sum().item<double>(), static_cast<double>(valid_cells.numel())};
  if (session_.plan.world > 1) TROUPE_TRY(session_.group->all_reduce_sum(counts));
  const auto scale = [&](double count) {
    return static_cast<float>(static_cast<double>(parts) / std::max(1.0, count));
  };
  minibatch[rl_keys::kLossScale] = at::tensor({scale(counts[0]), scale(counts[1])});
  const AlgorithmConfig& algorithm = setup_.config.algorithm;
  if (algorithm.policy_gradient.advantage_norm == "minibatch" && !algorithm.traits().compares_groups()) {
    at::Tensor& advantage = minibatch.at(rl_keys::kAdvantage);
    AdvantageMoments moments = advantage_moments(advantage, valid_cells);
    if (session_.plan.world > 1) {
      TROUPE_ASSIGN(moments, over_ranks(moments, *session_.group));
    }
    advantage = normalise(advantage, moments);
  }
  return minibatch;
}

Result<void> OnPolicyTrainer::train_minibatch(std::int64_t step, const Batch& rows, const at::Tensor& valid_cells,
                                              std::int64_t steps, Progress& progress) {
  const JobConfig& job = setup_.config;
  const std::int64_t micro = job.training.micro_batch_size, count = valid_cells.size(0), micros = count / micro;
  const std::int64_t parts = micros * session_.plan.world;
  TROUPE_ASSIGN(Batch minibatch, with_scale(rows, valid_cells, parts));
  const at::Tensor scale = minibatch.extract(rl_keys::kLossScale).mapped();
  const bool warming_up = optimizer_steps_ < job.algorithm.policy_gradient.critic_warmup_steps;
  const double weight = 1.0 / static_cast<double>(parts);
  std::map<std::string, double> metrics;
  for (std::int64_t m = 0; m < micros; ++m) {
    Batch part = take_sequences(minibatch, steps, [&](const at::Tensor& x, std::int64_t axis) {
      return micros == 1 ? x : x.narrow(axis, m * micro / steps, micro / steps);
    });
    part[rl_keys::kLossScale] = scale;
    part[rl_keys::kTrainedVersion] = at::scalar_tensor(step + 1, at::kLong);
    if (warming_up) part[rl_keys::kPolicyWeight] = at::scalar_tensor(0.0F, at::kFloat);
    part[rl_keys::kNoiseLevel] = at::scalar_tensor(flow_noise_level(job.policy.flow, step), at::kFloat);
    part = agent_.policy->prepare(std::move(part));
    TROUPE_ASSIGN(const MicroResult result, session_.engine->accumulate(part, weight, m == 0));
    metrics["loss"] += weight * result.loss;
    for (const auto& [name, value] : result.metrics)
      metrics[name] += (name == "nonfinite_samples" ? 1.0 : weight) * value;
  }
  std::vector<double> sums;
  for (const auto& [name, value] : metrics) sums.push_back(value);
  TROUPE_ASSIGN(const StepVote vote, session_.engine->vote(std::move(sums), {}));
  ++progress.minibatches;
  if (!vote.finite) {
    session_.engine->discard();
    ++progress.skipped;
    return divergence_.discarded(step + 1, configured_rates(job).at("actor"));
  }
  divergence_.applied(step + 1, vote.grad_norm);
  GroupRates rates = rl_rates(job, step);
  rates.erase("temperature");
  if (warming_up) rates.erase("actor");
  if (!job.algorithm.traits().has_critic()) rates.erase("critic");
  session_.engine->commit(rates, vote);
  ++optimizer_steps_;
  std::size_t i = 0;
  for (const auto& [name, value] : metrics) progress.metrics[name] += vote.sums.at(i++);
  progress.metrics["actor/grad_norm"] += vote.grad_norm;
  const auto kl = metrics.find("actor/kl_k3");
  progress.last_kl =
      kl == metrics.end() ? 0 : vote.sums.at(static_cast<std::size_t>(std::distance(metrics.begin(), kl)));
  return {};
}

}  // namespace troupe::workers
