// The update of one on-policy iteration: update_epochs passes over its rows in minibatches of global_batch_size, in an
// order drawn anew for each pass; passes end early above target_kl.
#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
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
std::vector<std::int64_t> permutation(std::int64_t count, std::uint64_t seed, std::int64_t step, std::int64_t epoch,
                                      std::int64_t rank) {
  const std::int64_t key[] = {step, epoch, rank};
  CounterRng rng(seed, rng_stream::minibatch, xxh3_64(std::as_bytes(std::span(key))));
  std::vector<std::int64_t> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  for (std::size_t i = order.size(); i-- > 1;) std::swap(order[i], order[rng.below(static_cast<std::uint32_t>(i + 1))]);
  return order;
}

/// A few numbers into a tensor, which is made where there is none: without the operations that at::tensor takes for it.
template <class T>
void put(at::Tensor& tensor, std::initializer_list<T> numbers, at::IntArrayRef shape) {
  if (!tensor.defined()) tensor = at::empty(shape, c10::CppTypeToScalarType<T>::value);
  std::copy(numbers.begin(), numbers.end(), tensor.mutable_data_ptr<T>());
}

/// Adds numbers by name; each name is the next one's place, which is found without a search where both have the same.
void add_same(std::map<std::string, double>& sums, const std::map<std::string, double>& numbers) {
  auto place = sums.begin();
  for (const auto& [name, number] : numbers) {
    place = sums.try_emplace(place, name, 0.0);
    place->second += number;
    ++place;
  }
}

/// The sums of all ranks.
Result<MinibatchRows::Counted> over_ranks(const MinibatchRows::Counted& mine, Collective& group) {
  if (group.world() == 1) return mine;
  const AdvantageMoments& moments = mine.advantages;
  double sums[] = {static_cast<double>(mine.valid), static_cast<double>(mine.cells), moments.count, moments.sum,
                   moments.sum_of_squares};
  TROUPE_TRY(group.all_reduce_sum(sums));
  return MinibatchRows::Counted{.valid = static_cast<std::int64_t>(sums[0]),
                                .cells = static_cast<std::int64_t>(sums[1]),
                                .advantages = {.count = sums[2], .sum = sums[3], .sum_of_squares = sums[4]}};
}

}  // namespace

Result<void> OnPolicyTrainer::normalise_advantages(RolloutRows& rows) const {
  const std::string& over = setup_.config.algorithm.policy_gradient.advantage_norm;
  // Group-relative advantages are normalised by their groups.
  if (over == "none" || over == "minibatch" || setup_.config.algorithm.traits().compares_groups()) return {};
  at::Tensor& advantage = rows.rows.at(rl_keys::kAdvantage);
  MinibatchRows::Counted counted{.advantages = advantage_moments(advantage, rows.valid_cells)};
  if (over == "global") {
    TROUPE_ASSIGN(counted, over_ranks(counted, *session_.group));
  }
  advantage = normalise(advantage, counted.advantages);
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
  MinibatchRows parts(rows, setup_.config.training.micro_batch_size);
  const std::int64_t epochs = setup_.config.algorithm.policy_gradient.update_epochs;
  for (std::int64_t epoch = 0; epoch < epochs && !progress.stopped; ++epoch)
    TROUPE_TRY(pass(step, epoch, parts, progress));
  return progress;
}

Result<void> OnPolicyTrainer::pass(std::int64_t step, std::int64_t epoch, MinibatchRows& rows, Progress& progress) {
  // a sequence is never cut: its memory follows from its first step
  const auto share =
      static_cast<std::size_t>(setup_.config.training.global_batch_size / session_.plan.world / rows.steps());
  const std::vector<std::int64_t> order = permutation(
      rows.num_sequences(), static_cast<std::uint64_t>(setup_.config.job.seed), step, epoch, session_.plan.rank);
  double kl = 0;
  std::int64_t minibatches = 0;
  for (std::size_t begin = 0; begin + share <= order.size(); begin += share) {
    const std::int64_t skipped = progress.skipped;
    TROUPE_TRY(train_minibatch(step, rows, std::span(order).subspan(begin, share), progress));
    if (progress.skipped > skipped) continue;
    kl += progress.last_kl;
    ++minibatches;
  }
  const double limit = setup_.config.algorithm.policy_gradient.target_kl;
  // the divergence is that of votes: every rank stops at the same pass
  progress.stopped = limit > 0 && minibatches > 0 && kl / static_cast<double>(minibatches) > limit;
  return {};
}

Result<void> OnPolicyTrainer::train_minibatch(std::int64_t step, MinibatchRows& rows,
                                              std::span<const std::int64_t> sequences, Progress& progress) {
  const JobConfig& job = setup_.config;
  const auto per_part = static_cast<std::size_t>(rows.part_rows() / rows.steps());
  const std::size_t micros = sequences.size() / per_part;
  const auto parts = static_cast<double>(micros) * static_cast<double>(session_.plan.world);
  TROUPE_ASSIGN(const MinibatchRows::Counted counted, over_ranks(rows.count(sequences), *session_.group));
  const auto scale = [&](std::int64_t cells) {
    return static_cast<float>(parts / static_cast<double>(std::max<std::int64_t>(1, cells)));
  };
  const bool warming_up = optimizer_steps_ < job.algorithm.policy_gradient.critic_warmup_steps;
  const bool normalises =
      job.algorithm.policy_gradient.advantage_norm == "minibatch" && !job.algorithm.traits().compares_groups();
  const double weight = 1.0 / parts;
  std::map<std::string, double> metrics;
  for (std::size_t m = 0; m < micros; ++m) {
    Batch& part = rows.gather(sequences.subspan(m * per_part, per_part), normalises ? &counted.advantages : nullptr);
    put(part[rl_keys::kLossScale], {scale(counted.valid), scale(counted.cells)}, {2});
    put<std::int64_t>(part[rl_keys::kTrainedVersion], {step + 1}, {});
    if (job.algorithm.policy_gradient.critic_warmup_steps > 0)
      put(part[rl_keys::kPolicyWeight], {warming_up ? 0.0F : 1.0F}, {});
    put(part[rl_keys::kNoiseLevel], {static_cast<float>(flow_noise_level(job.policy.flow, step))}, {});
    const bool prepares = agent_.policy->needs_preparing();
    const Batch prepared = prepares ? agent_.policy->prepare(part) : Batch();
    TROUPE_ASSIGN(MicroResult result, session_.engine->accumulate(prepares ? prepared : part, weight, m == 0));
    result.metrics["loss"] = result.loss;
    if (m == 0)
      metrics = std::move(result.metrics);
    else
      add_same(metrics, result.metrics);
  }
  for (auto& [name, value] : metrics) value *= name == "nonfinite_samples" ? 1.0 : weight;
  GroupRates rates = rl_rates(job, step);
  rates.erase("temperature");
  if (warming_up) rates.erase("actor");
  if (!job.algorithm.traits().has_critic()) rates.erase("critic");
  TROUPE_ASSIGN(const StepVote vote,
                session_.engine->finish_step(rates, [&](const auto&) { return numbers_of(metrics); }));
  ++progress.minibatches;
  if (!vote.finite) {
    ++progress.skipped;
    return divergence_.discarded(step + 1, configured_rates(job).at("actor"));
  }
  divergence_.applied(step + 1, vote.grad_norm);
  ++optimizer_steps_;
  std::size_t i = 0;
  for (auto& [name, value] : metrics) value = vote.sums.at(i++);
  add_same(progress.metrics, metrics);
  progress.metrics["actor/grad_norm"] += vote.grad_norm;
  const auto kl = metrics.find("actor/kl_k3");
  progress.last_kl = kl == metrics.end() ? 0 : kl->second;
  return {};
}

}  // namespace troupe::workers
