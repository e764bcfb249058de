// Training inputs and Euler prediction.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "base/random.h"
#include "model/wan/dit.h"
#include "model/wan/predict.h"
#include "tests/model/wan/network_run.h"
#include "tests/model/wan/tiny_model.h"
#include "tests/support/tensor_checks.h"

namespace troupe::model {
namespace {

const TinyShape kTwoBlocks{.name = "two_blocks"};

TEST(TrainingInputsTest, ASamplesDrawsDependOnItsPositionAlone) {
  const auto together = tiny_batch(kTwoBlocks, 4, at::kFloat, 10), alone = tiny_batch(kTwoBlocks, 1, at::kFloat, 12);
  for (const auto& [name, value] : alone) {
    EXPECT_TRUE(at::equal(together.at(name).narrow(0, 2, 1), value)) << name;
  }
}

TEST(TrainingInputsTest, EvaluationDrawsFromItsOwnStreamsAndRepeats) {
  const auto train = tiny_batch(kTwoBlocks, 2, at::kFloat, 0, NoiseMode::train);
  const auto eval = tiny_batch(kTwoBlocks, 2, at::kFloat, 0, NoiseMode::eval);
  const auto again = tiny_batch(kTwoBlocks, 2, at::kFloat, 0, NoiseMode::eval);
  EXPECT_TRUE(at::equal(train.at(batch_keys::kCleanLatents), eval.at(batch_keys::kCleanLatents)));
  for (const char* name : {batch_keys::kVideoTarget, batch_keys::kActionTarget, batch_keys::kVideoIds}) {
    EXPECT_FALSE(at::equal(train.at(name), eval.at(name))) << name;
    EXPECT_TRUE(at::equal(again.at(name), eval.at(name))) << name;
  }
}

TEST(TrainingInputsTest, NoisyMinusCleanIsSigmaTimesTheTarget) {
  const auto batch = tiny_batch(kTwoBlocks, 3, at::kDouble);
  const auto sigma =
      make_flow_schedule().sigmas.index({batch.at(batch_keys::kVideoIds)}).to(at::kDouble).view({3, 1, -1, 1, 1});
  const auto moved = batch.at(batch_keys::kNoisyLatents) - batch.at(batch_keys::kCleanLatents);
  EXPECT_LE(max_difference(moved, sigma * batch.at(batch_keys::kVideoTarget)), 1e-12);
}

/// A forward whose velocity is known: it leads from the noise straight to a fixed sample.
struct StraightFlow {
  at::Tensor noise_video, noise_actions, video, actions;
  int calls = 0;
  Result<Outputs> operator()(const Batch& batch) {
    ++calls;
    EXPECT_EQ(batch.count(batch_keys::kVideoTarget), 0U);
    Outputs outputs;
    outputs.predictions[batch_keys::kVideoVelocity] = noise_video - video;
    outputs.predictions[batch_keys::kActionVelocity] = noise_actions - actions;
    return outputs;
  }
};

TEST(PredictTest, AStraightFlowArrivesExactly) {
  const auto batch = tiny_batch(kTwoBlocks, 1, at::kDouble);
  StraightFlow flow{batch.at(batch_keys::kNoisyLatents), batch.at(batch_keys::kNoisyActions),
                    batch.at(batch_keys::kCleanLatents) * 0.5, batch.at(batch_keys::kNoisyActions).tanh()};
  const auto result = predict(batch, flow.noise_video, flow.noise_actions, 10, std::ref(flow));
  EXPECT_EQ(flow.calls, 10);
  // the first id has sigma one, the last step ends at zero
  EXPECT_LE(max_difference(result->video, flow.video), 1e-6);
  EXPECT_LE(max_difference(result->actions, flow.actions), 1e-6);
}

TEST(PredictTest, TheNetworkPredictsTheShapesItWasGivenAndRepeats) {
  const DitNetwork network(tiny_config(kTwoBlocks), 2);
  const auto parameters = random_parameters(network.units(), 5, at::kFloat);
  const auto batch = tiny_batch(kTwoBlocks, 2, at::kFloat);
  const auto forward = [&](const Batch& b) -> Result<Outputs> { return run_network(network, parameters, b); };
  const std::vector<std::uint64_t> positions{0, 1};
  const auto video = keyed_noise(1, rng_stream::eval_video_noise, positions, {3, 5, 4, 6});
  const auto actions = keyed_noise(1, rng_stream::eval_action_noise, positions, {6, 5});
  const auto a = predict(batch, video, actions, 4, forward), b = predict(batch, video, actions, 4, forward);
  EXPECT_EQ(a->video.sizes(), video.sizes());
  EXPECT_TRUE(a->video.isfinite().all().item<bool>());
  EXPECT_TRUE(at::equal(a->video, b->video));
  EXPECT_TRUE(at::equal(a->actions, b->actions));
}

TEST(PredictTest, OddLatentsAndBadStepCountsAreRefused) {
  const DitNetwork network(tiny_config(kTwoBlocks), 2);
  const auto parameters = random_parameters(network.units(), 5, at::kFloat);
  auto batch = tiny_batch(kTwoBlocks, 1, at::kFloat);
  const auto forward = [&](const Batch& b) -> Result<Outputs> { return run_network(network, parameters, b); };
  const auto actions = batch.at(batch_keys::kNoisyActions);
  EXPECT_FALSE(predict(batch, batch.at(batch_keys::kNoisyLatents), actions, 0, forward));
  batch[batch_keys::kCleanLatents] = at::zeros({1, 3, 5, 5, 6});
  EXPECT_EQ(predict(batch, at::ones({1, 3, 5, 5, 6}), actions, 2, forward).error().code(), Errc::invalid_argument);
}

TEST(TinyTrainingTest, GradientDescentLowersTheLossOfAFixedBatch) {
  const DitNetwork network(tiny_config(kTwoBlocks), 2);
  NamedTensors initial;
  for (const auto& unit : network.units()) {
    for (const auto& spec : unit.params) initial[spec.name] = initial_tensor(spec, 42);
  }
  auto parameters = recording(initial);
  const auto batch = tiny_batch(kTwoBlocks, 4, at::kFloat);
  std::vector<double> losses;
  for (int step = 0; step < 30; ++step) {
    const auto outputs = run_network(network, parameters, batch);
    losses.push_back(outputs.loss.item<double>());
    const auto grads = gradients(outputs.loss, parameters);
    for (auto& [name, tensor] : parameters) {
      tensor = (tensor.detach() - 0.05 * grads.at(name)).set_requires_grad(true);
    }
  }
  EXPECT_LT(losses.back(), 0.9 * losses.front());
}

}  // namespace
}  // namespace troupe::model
