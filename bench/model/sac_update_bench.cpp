// One update of soft actor-critic, critics and actor and temperature with Adam and the targets' moving average, at
// the sizes of HalfCheetah: batch 256, 17 observations, 6 actions, two 2x256 Q networks, one core; and of Pendulum with
// 2x64, on as many threads as the argument says (bench/peers/loop_bench.sh). Expect the engine
// with the hand-written backward to be the fastest, because it forms no gradient of Q's weights in the actor's phase
// and allocates little; the matrix products alone are about 0.6 GFLOP an update.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <benchmark/benchmark.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>

#include "bench/support/failures.h"
#include "comm/collective/collective.h"
#include "kernels/threads.h"
#include "model/loss/rl_keys.h"
#include "model/policy/sac_objective.h"
#include "model/policy/sac_policy.h"
#include "model/shard/engine.h"
#include "model/shard/init.h"

namespace troupe::bench {
namespace {

constexpr std::int64_t kRows = 256;
/// Numbers of an observation and an action, and the width of the networks.
struct Task {
  std::int64_t state, action, width;
};
constexpr Task kHalfCheetah{17, 6, 256}, kPendulum{3, 1, 64};
constexpr double kRate = 3e-4, kTau = 0.005;

struct Job {
  PolicyConfig policy;
  AlgorithmConfig algorithm;
  PolicyShape shape;
};

Job make_job(const Task& task, bool explicit_backward) {
  Job job;
  job.policy.hidden = {task.width, task.width};
  job.policy.activation = Activation::relu;
  job.algorithm.name = Algorithm::sac;
  job.algorithm.explicit_backward = explicit_backward;
  job.shape.state_dim = task.state;
  job.shape.action_dim = task.action;
  job.shape.action_low.assign(static_cast<std::size_t>(task.action), -1.0F);
  job.shape.action_high.assign(static_cast<std::size_t>(task.action), 1.0F);
  return job;
}

Batch make_batch(const Task& task) {
  const auto generator = at::detail::createCPUGenerator(1);
  const auto normal = [&](std::int64_t columns) { return at::randn({kRows, columns}, generator, at::kFloat); };
  Batch batch{{rl_keys::kState, normal(task.state)},          {rl_keys::kNextState, normal(task.state)},
              {rl_keys::kAction, normal(task.action).tanh()}, {rl_keys::kReward, normal(1)},
              {rl_keys::kActionNoise, normal(task.action)},   {rl_keys::kNextNoise, normal(task.action)}};
  batch[rl_keys::kContinues] = at::full({kRows, 1}, 0.99);
  return batch;
}

/// The same networks as leaves of ordinary autograd, with Adam written in ATen.
class PlainSac {
 public:
  explicit PlainSac(std::shared_ptr<const SacModel> model) : model_(std::move(model)) {
    for (const auto& unit : model_->units()) {
      auto& view = views_.emplace_back();
      const auto layout = make_flat_layout(unit.params);
      const auto flat = at::zeros({layout.numel}, at::kFloat);
      fill_initial(unit, layout, 1, 0, {flat.data_ptr<float>(), static_cast<std::size_t>(layout.numel)});
      const auto slot = views_of(layout, flat, /*leaves=*/false);
      for (const auto& [name, tensor] : slot.tensors()) {
        view.set(name, tensor.clone().requires_grad_(unit.trainable));
      }
    }
  }

  double update(const Batch& batch) {
    const Batch next{{rl_keys::kState, batch.at(rl_keys::kNextState)}};
    at::Tensor target;
    {
      const at::NoGradGuard no_grad;
      const auto sample = model_->sample(views_[SacModel::kActor], next, batch.at(rl_keys::kNextNoise));
      const auto q = model_->target_values(views_[SacModel::kTarget], next, sample.action).amin(1, true);
      target = batch.at(rl_keys::kReward) +
               batch.at(rl_keys::kContinues) *
                   (q - model_->alpha(views_[SacModel::kTemperature]) * sample.logp.sum(1, true));
    }
    const auto critic_loss =
        (model_->values(views_[SacModel::kCritic], batch, batch.at(rl_keys::kAction)) - target).square().mean();
    step(critic_loss, {SacModel::kCritic});
    const auto sample = model_->sample(views_[SacModel::kActor], batch, batch.at(rl_keys::kActionNoise));
    const auto logp = sample.logp.sum(1, true);
    const auto alpha = model_->alpha(views_[SacModel::kTemperature]);
    const auto q = model_->values(views_[SacModel::kCritic], batch, sample.action).amin(1, true);
    const auto actor_loss =
        (alpha.detach() * logp - q).mean() - alpha * (logp.detach().mean() + model_->target_entropy());
    step(actor_loss, {SacModel::kActor, SacModel::kTemperature});
    average();
    return critic_loss.item<double>() + actor_loss.item<double>();
  }

 private:
  void step(const at::Tensor& loss, const std::vector<std::size_t>& units) {
    std::vector<at::Tensor> leaves;
    for (const auto u : units) {
      for (const auto& [name, tensor] : views_[u].tensors()) leaves.push_back(tensor);
    }
    const auto gradients = torch::autograd::grad({loss}, leaves);
    const at::NoGradGuard no_grad;
    const double step = static_cast<double>(++steps_[units.front()]);
    for (std::size_t i = 0; i < leaves.size(); ++i) {
      auto& [m, v] =
          moments_.try_emplace(leaves[i].unsafeGetTensorImpl(), at::zeros_like(leaves[i]), at::zeros_like(leaves[i]))
              .first->second;
      m.lerp_(gradients[i], 0.1);
      v.mul_(0.999).addcmul_(gradients[i], gradients[i], 0.001);
      leaves[i].addcdiv_(m, v.sqrt().div_(std::sqrt(1 - std::pow(0.999, step))).add_(1e-8),
                         -kRate / (1 - std::pow(0.9, step)));
    }
  }

  void average() {
    const at::NoGradGuard no_grad;
    auto online = views_[SacModel::kCritic].tensors().begin();
    for (const auto& [name, tensor] : views_[SacModel::kTarget].tensors()) tensor.lerp_((online++)->second, kTau);
  }

  const std::shared_ptr<const SacModel> model_;
  std::vector<ParamView> views_;
  std::map<std::size_t, std::int64_t> steps_;
  std::map<at::TensorImpl*, std::pair<at::Tensor, at::Tensor>> moments_;
};

void BM_SacPlainAutograd(benchmark::State& state) {
  at::set_num_threads(1);
  const auto job = make_job(kHalfCheetah, false);
  PlainSac plain(must(SacModel::make(job.policy, job.algorithm, job.shape)));
  const auto batch = make_batch(kHalfCheetah);
  for (auto _ : state) benchmark::DoNotOptimize(plain.update(batch));
}
BENCHMARK(BM_SacPlainAutograd)->Unit(benchmark::kMillisecond)->MinWarmUpTime(0.2);

void engine_step(Engine& engine, const Network& phase, const Batch& batch, const GroupRates& rates) {
  (void)must(engine.accumulate(batch, 1.0, /*first=*/true, &phase));
  engine.commit(rates, must(engine.vote({}, {})));
}

/// Arg: threads that stand by, as a learner's do.
void BM_SacEngine(benchmark::State& state, const Task& task, bool explicit_backward) {
  at::set_num_threads(1);
  const auto job = make_job(task, explicit_backward);
  const auto net = must(make_sac_policy_net(job.policy, job.algorithm, job.shape));
  const auto critic = net->objective("critic"), actor = net->objective("actor");
  const auto group = make_thread_group(1, std::chrono::seconds(60));
  const auto collective = join_thread_group(group, 0);
  EngineOptions options;
  options.param_slots = options.grad_slots = static_cast<int>(net->units().size());
  options.recompute = {RecomputeLevel::none};
  Engine engine(critic, options);
  must(engine.attach(*collective));
  engine.initialise(1);
  const auto batch = make_batch(task);
  kernels::with_own_team(static_cast<int>(state.range(0)), [&] {
    for (auto _ : state) {
      engine_step(engine, *critic, batch, {{"critic", kRate}});
      engine_step(engine, *actor, batch, {{"actor", kRate}, {"temperature", kRate}});
      engine.average(kTau);
    }
  });
}
BENCHMARK_CAPTURE(BM_SacEngine, halfcheetah_autograd, kHalfCheetah, false)
    ->Arg(1)
    ->Unit(benchmark::kMillisecond)
    ->MinWarmUpTime(0.2);
BENCHMARK_CAPTURE(BM_SacEngine, halfcheetah, kHalfCheetah, true)
    ->Arg(1)
    ->Arg(2)
    ->Unit(benchmark::kMillisecond)
    ->MinWarmUpTime(0.2);
BENCHMARK_CAPTURE(BM_SacEngine, pendulum, kPendulum, true)
    ->Arg(1)
    ->Arg(2)
    ->Unit(benchmark::kMillisecond)
    ->MinWarmUpTime(0.2);

/// Forward and backward of one phase alone, without optimizer: what the matrix products cost.
void BM_SacExplicitPhase(benchmark::State& state, const std::string& phase) {
  at::set_num_threads(1);
  const auto job = make_job(kHalfCheetah, true);
  const auto net = must(make_sac_policy_net(job.policy, job.algorithm, job.shape));
  std::vector<ParamView> params, gradients;
  for (const auto& unit : net->units()) {
    auto& view = params.emplace_back();
    auto& gradient = gradients.emplace_back();
    for (const auto& param : unit.params) {
      view.set(param.name, 0.05 * at::randn(param.shape, at::kFloat));
      if (unit.trainable) gradient.set(param.name, at::zeros(param.shape, at::kFloat));
    }
  }
  const auto batch = make_batch(kHalfCheetah);
  const auto* form = net->objective(phase)->manual_backward();
  for (auto _ : state) benchmark::DoNotOptimize(form->run(params, batch, 1.0, gradients).loss);
}
BENCHMARK_CAPTURE(BM_SacExplicitPhase, critic, "critic")->Unit(benchmark::kMillisecond)->MinWarmUpTime(0.2);
BENCHMARK_CAPTURE(BM_SacExplicitPhase, actor, "actor")->Unit(benchmark::kMillisecond)->MinWarmUpTime(0.2);

}  // namespace
}  // namespace troupe::bench
