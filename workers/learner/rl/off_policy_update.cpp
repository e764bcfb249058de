// One update of soft actor-critic: the critics; every sac.actor_every updates as many of actor and temperature; every
// sac.target_every a step of the target networks by sac.tau (Haarnoja et al. 2018, arXiv 1812.05905, algorithm 1).
#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/random.h"
#include "model/loss/rl_keys.h"
#include "workers/learner/rl/off_policy_trainer.h"

namespace troupe::workers {

namespace {

at::Tensor normals(std::int64_t rows, std::int64_t columns, CounterRng& rng) {
  at::Tensor out = at::empty({rows, columns}, at::kFloat);
  auto* values = out.mutable_data_ptr<float>();
  for (std::int64_t i = 0; i < rows * columns; ++i) values[i] = rng.normal();
  return out;
}

/// `count` of `among` different numbers.
at::Tensor subset(std::int64_t count, std::int64_t among, CounterRng& rng) {
  std::vector<std::int64_t> all(static_cast<std::size_t>(among));
  std::iota(all.begin(), all.end(), 0);
  for (std::int64_t i = 0; i < count; ++i) {
    std::swap(all[static_cast<std::size_t>(i)],
              all[static_cast<std::size_t>(i + rng.below(static_cast<std::uint32_t>(among - i)))]);
  }
  all.resize(static_cast<std::size_t>(count));
  std::sort(all.begin(), all.end());
  return at::tensor(all, at::kLong);
}

}  // namespace

Batch OffPolicyTrainer::draw() {
  const JobConfig& job = setup_.config;
  const std::int64_t rows = job.training.global_batch_size / session_.plan.world;
  const auto seed = static_cast<std::uint64_t>(job.job.seed);
  const auto index = static_cast<std::uint64_t>(draws_of_run_++ * session_.plan.world + session_.plan.rank);
  Batch batch = draw_with_demonstrations(replay_, recorded_, job.algorithm.demonstration_share, rows, seed, index);
  draws_ += rows;
  CounterRng rng(seed, rng_stream::update_noise, index);
  const std::int64_t actions = batch.at(rl_keys::kAction).size(1);
  batch[rl_keys::kActionNoise] = normals(rows, actions, rng);
  batch[rl_keys::kNextNoise] = normals(rows, actions, rng);
  const SacConfig& sac = job.algorithm.sac;
  if (sac.target_subset > 0) {
    // the same critics on every rank
    CounterRng shared(seed, rng_stream::update_noise, ~static_cast<std::uint64_t>(updates_));
    batch[rl_keys::kSubset] = subset(sac.target_subset, sac.critics, shared);
  }
  return batch;
}

Result<void> OffPolicyTrainer::train_phase(const Network& objective, const std::vector<std::string>& groups,
                                           const Batch& batch, Progress& progress) {
  Engine& engine = *session_.engine;
  const std::int64_t rows = batch.at(rl_keys::kReward).size(0), micro = setup_.config.training.micro_batch_size;
  const std::int64_t micros = std::max<std::int64_t>(1, rows / micro);
  const double weight = 1.0 / static_cast<double>(micros * session_.plan.world);
  std::map<std::string, double> metrics;
  for (std::int64_t m = 0; m < micros; ++m) {
    Batch part;
    if (micros > 1) {
      for (const auto& [name, tensor] : batch)
        part[name] = name == rl_keys::kSubset ? tensor : tensor.narrow(0, m * micro, micro);
    }
    TROUPE_ASSIGN(const MicroResult result, engine.accumulate(micros > 1 ? part : batch, weight, m == 0, &objective));
    for (const auto& [name, value] : result.metrics) metrics[name] += weight * value;
  }
  const GroupRates all = rl_rates(setup_.config, step_);
  const auto trained = engine.group_updates();
  GroupRates rates;
  for (const std::string& group : groups) {
    if (trained.count(group) != 0) rates[group] = all.at(group);
  }
  TROUPE_ASSIGN(const StepVote vote, engine.finish_step(rates, [&](const auto&) { return numbers_of(metrics); }));
  Divergence& divergence = divergence_.try_emplace(groups.front(), kRlDivergence).first->second;
  if (!vote.finite) {
    ++progress.skipped;
    return divergence.discarded(step_ + 1, configured_rates(setup_.config).at(groups.front()));
  }
  divergence.applied(step_ + 1, vote.grad_norm);
  std::size_t i = 0;
  for (const auto& [name, value] : metrics) {
    progress.sums[name] += vote.sums.at(i++);
    ++progress.counts[name];
  }
  return {};
}

Result<bool> OffPolicyTrainer::may_draw() {
  // All that was collected may have been lost with failing environments, on one rank alone.
  if (may_draw_) return true;
  double empty = replay_.resident() > 0 ? 0.0 : 1.0;
  TROUPE_TRY(session_.group->all_reduce_max({&empty, 1}));
  return may_draw_ = empty == 0.0;
}

Result<void> OffPolicyTrainer::update(Progress& progress) {
  const SacConfig& sac = setup_.config.algorithm.sac;
  Batch batch = draw();
  TROUPE_TRY(train_phase(*critic_objective_, {"critic"}, batch, progress));
  ++updates_;
  if (updates_ % sac.actor_every == 0) {
    for (std::int64_t repeat = 0; repeat < sac.actor_every; ++repeat) {
      if (repeat > 0) batch = draw();
      TROUPE_TRY(train_phase(*actor_objective_, {"actor", "temperature"}, batch, progress));
    }
  }
  if (updates_ % sac.target_every == 0) session_.engine->average(sac.tau);
  return {};
}

}  // namespace troupe::workers
