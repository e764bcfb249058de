// Drawn steps of DreamZero's actions: what a policy call draws, and its log-probability, which the training forward
// gives again.
#include "model/wan/infer/action_density.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <torch/autograd.h>

#include <string>
#include <vector>

#include "model/wan/dit.h"
#include "model/wan/infer/denoise.h"
#include "tests/model/wan/infer/infer_fixture.h"
#include "tests/support/tensor_checks.h"

namespace troupe::model {
namespace {

namespace key = batch_keys;

constexpr double kNoiseLevel = 0.5;

TinyShape shape_of(std::int64_t blocks) { return {.name = "plain", .blocks = blocks, .max_blocks = 3}; }

InferOptions options_of() {
  return {.sampler = DenoiseSampler::euler, .steps = 4, .cfg_scale = 3.0, .state_self_only = true};
}

struct Drawn {
  Denoised done;
  NoisyBlock noisy;
};

/// Denoises the batch's last block; the actions of step `step` are drawn, of none where it is negative.
Drawn drawn(const InferSetup& setup, std::int64_t step, double noise_level) {
  auto dit = setup.make(/*state_self_only=*/true);
  const auto options = options_of();
  const auto known = setup.shape.blocks - 1;
  const auto episode = setup.episode(dit, 0, 1, known, options.branches());
  const auto noisy = setup.noisy(0, 1, known, 0, 0);
  DenoiseRequest request{episode.get(), noisy.video, noisy.actions, noisy.states};
  if (step >= 0) request.draw = ActionDraw{step, seeded_noise(31, noisy.actions.sizes()), noise_level};
  return {Denoiser(options).run(dit, {&request, 1}).front(), noisy};
}

at::Tensor steps_of(const ActionTransition& t) { return at::full({t.actions.size(0)}, t.step, at::kLong); }

/// The transition's log-probability by the training forward.
at::Tensor recomputed(const InferSetup& setup, const ActionTransition& t, const NamedTensors& parameters) {
  const auto levels = shifted_levels(options_of().steps, options_of().shift);
  const DitNetwork network(setup.config, setup.shape.max_blocks, {}, schedule_of(levels));
  Batch batch = setup.batch;
  const auto nfpb = setup.shape.frames_per_block, napb = setup.shape.actions_per_block;
  const auto last_of = [](at::Tensor& x, std::int64_t axis, std::int64_t count, const at::Tensor& value) {
    x = x.clone();
    x.narrow(axis, x.size(axis) - count, count).copy_(value);
  };
  last_of(batch[key::kNoisyLatents], 2, nfpb, t.video);
  last_of(batch[key::kNoisyActions], 1, napb, t.actions);
  batch[key::kVideoIds] = at::full_like(batch.at(key::kVideoIds), t.step);
  batch[key::kActionIds] = at::full_like(batch.at(key::kActionIds), t.step);
  for (const char* target : {key::kVideoTarget, key::kActionTarget}) batch.erase(target);
  const auto outputs = testing::run_network(network, parameters, batch);
  const auto& all = outputs.predictions.at(key::kActionVelocity);
  const auto velocity = all.narrow(1, all.size(1) - napb, napb);
  const auto moments = action_moments(t.actions, velocity, levels, steps_of(t), kNoiseLevel);
  return flow_step_logp(t.next, moments.mean, moments.std, /*safe=*/false);
}

TEST(ActionDrawTest, TheTrainingForwardOfUnchangedWeightsGivesTheLogProbabilityOfThePolicyCall) {
  for (const std::int64_t blocks : {1, 3}) {
    for (std::int64_t step = 0; step < 4; ++step) {
      SCOPED_TRACE(fmt::format("{} blocks, step {}", blocks, step));
      const InferSetup setup(shape_of(blocks), 1, at::kFloat);
      const auto run = drawn(setup, step, kNoiseLevel);
      ASSERT_TRUE(run.done.transition);
      const auto again = recomputed(setup, *run.done.transition, setup.parameters);
      const auto difference = again - run.done.transition->logp;
      EXPECT_LE(difference.abs().max().item<double>(), 1e-4) << "per number";
      EXPECT_NEAR(difference.exp().mean().item<double>(), 1.0, 1e-3);
      EXPECT_GT(run.done.transition->logp.abs().max().item<double>(), 0.0);
    }
  }
}

TEST(ActionDrawTest, WithoutNoiseTheChainIsTheDeterministicSamplers) {
  const InferSetup setup(shape_of(3), 1, at::kDouble);
  const auto plain = drawn(setup, -1, 0);
  for (std::int64_t step = 0; step < 4; ++step) {
    const auto run = drawn(setup, step, 0.0);
    EXPECT_LE(testing::max_difference(run.done.actions, plain.done.actions), 1e-12) << step;
    EXPECT_LE(testing::max_difference(run.done.video, plain.done.video), 1e-12) << step;
    EXPECT_EQ(run.done.transition->logp.abs().max().item<double>(), 0.0) << "a step without noise has no density";
  }
  EXPECT_FALSE(plain.done.transition);
}

TEST(ActionDrawTest, RowsAtStepsOfTheirOwnHaveTheMomentsOfThoseSteps) {
  const auto levels = shifted_levels(4, 5.0);
  const auto x = seeded_noise(1, {6, 3, 5}), velocity = seeded_noise(2, {6, 3, 5});
  const std::vector<double> times(levels.sigmas.begin(), levels.sigmas.end());
  const std::vector<std::int64_t> steps{2, 0, 3, 1, 0, 3};
  const auto all = action_moments(x, velocity, levels, at::tensor(steps), kNoiseLevel);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const auto row = static_cast<std::int64_t>(i);
    const auto weights = flow_weights(FlowMethod::sde, times, steps[i], kNoiseLevel);
    const auto mean = flow_step_mean(x[row], velocity[row], times[static_cast<std::size_t>(steps[i])], weights);
    testing::expect_near(all.mean[row], mean, 1e-6, "mean of row " + std::to_string(row));
    testing::expect_near(all.std[row], at::full_like(mean, weights.std), 1e-7, "width of row " + std::to_string(row));
  }
}

TEST(ActionDrawTest, TheGradientOfTheLogProbabilityIsTheDistanceOverTheVariance) {
  const InferSetup setup(shape_of(1), 1, at::kDouble);
  const auto t = *drawn(setup, 2, kNoiseLevel).done.transition;
  const auto levels = shifted_levels(4, 5.0);
  const auto velocity = at::zeros_like(t.actions).set_requires_grad(true);
  const auto moments = action_moments(t.actions, velocity, levels, steps_of(t), kNoiseLevel);
  const auto logp = flow_step_logp(t.next, moments.mean, moments.std, false).sum();
  const auto of_mean = torch::autograd::grad({logp}, {moments.mean}).front();
  EXPECT_LE(testing::max_difference(of_mean, (t.next - moments.mean) / moments.std.square()), 1e-9);
}

}  // namespace
}  // namespace troupe::model
