// The DiT against a dense-mask evaluation in f64, its exact trimming, and what the engine relies on.
#include "model/wan/dit.h"

#include <gtest/gtest.h>

#include "tests/model/wan/dense_dit.h"
#include "tests/model/wan/network_run.h"
#include "tests/model/wan/tiny_model.h"
#include "tests/support/tensor_checks.h"

namespace troupe::model {
namespace {

DitOptions options_for(const TinyShape& shape, bool trim) {
  return {.trim = trim, .decoupled_action_timesteps = shape.decoupled};
}

/// With all that leaves out work: trimming, collapsed pads, shared prompts, rows of time steps.
DitOptions least_work(const TinyShape& shape) {
  return {.collapse_text_pads = true, .decoupled_action_timesteps = shape.decoupled};
}

/// f64 rounding of a two-block network; a wrong mask or position moves results by 1e-3 or more.
constexpr double kExact = 1e-10;

class DitTest : public ::testing::TestWithParam<TinyShape> {};

TEST_P(DitTest, LossAndEveryGradientMatchADenseMask) {
  const auto batch = tiny_batch(GetParam(), 2, at::kDouble);
  const DitNetwork network(tiny_config(GetParam()), GetParam().max_blocks, options_for(GetParam(), true));
  const auto parameters = recording(random_parameters(network.units(), 5, at::kDouble));
  const auto outputs = run_network(network, parameters, batch);
  testing::DenseDit dense(GetParam(), parameters);
  const auto want = dense.loss(batch);

  EXPECT_LE(max_difference(outputs.predictions.at(batch_keys::kVideoVelocity), dense.v_video), kExact);
  EXPECT_LE(max_difference(outputs.predictions.at(batch_keys::kActionVelocity), dense.v_action), kExact);
  EXPECT_LE(max_difference(outputs.loss, want), kExact);
  const auto got_grads = gradients(outputs.loss, parameters), want_grads = gradients(want, parameters);
  for (const auto& [name, grad] : want_grads) EXPECT_LE(max_difference(got_grads.at(name), grad), kExact) << name;
}

TEST_P(DitTest, TheGradientOfSampledLabelsIsTheJacobiansProductWithScaledNoise) {
  Batch batch = tiny_batch(GetParam(), 2, at::kDouble);
  batch[batch_keys::kSampleWeight] = at::tensor({0.5, 1.0});
  const DitNetwork network(tiny_config(GetParam()), GetParam().max_blocks, options_for(GetParam(), true));
  const auto parameters = recording(random_parameters(network.units(), 5, at::kDouble));
  // the loss is quadratic in each prediction: dL/dv = 2 c (v - y), and twice c is what it grows by with v
  const auto outputs = run_network(network, parameters, batch);
  const std::vector<at::Tensor> predicted = {outputs.predictions.at(batch_keys::kVideoVelocity),
                                             outputs.predictions.at(batch_keys::kActionVelocity)};
  const auto slopes = torch::autograd::grad({outputs.loss}, predicted, {}, /*retain_graph=*/true);
  std::vector<at::Tensor> seeds;
  at::manual_seed(4);
  const char* const targets[] = {batch_keys::kVideoTarget, batch_keys::kActionTarget};
  const char* const noises[] = {batch_keys::kVideoLabelNoise, batch_keys::kActionLabelNoise};
  for (std::size_t i = 0; i < 2; ++i) {
    at::Tensor target = batch.at(targets[i]), noise = at::randn(target.sizes(), at::kDouble);
    batch[noises[i]] = noise;
    if (i == 0) {
      target = target.narrow(3, 0, predicted[0].size(3)).narrow(4, 0, predicted[0].size(4));
      noise = noise.narrow(3, 0, predicted[0].size(3)).narrow(4, 0, predicted[0].size(4));
    }
    seeds.push_back((slopes[i] / (predicted[i] - target)).clamp_min(0).sqrt().detach() * noise);
  }
  std::vector<at::Tensor> leaves;
  for (const auto& [name, tensor] : parameters) leaves.push_back(tensor);
  const auto want = torch::autograd::grad(predicted, leaves, seeds, std::nullopt, false, /*allow_unused=*/true);
  const auto got = gradients(run_network(network, parameters, batch).loss, parameters);
  std::size_t next = 0;
  for (const auto& [name, gradient] : got) {
    const at::Tensor& expected = want[next++];
    EXPECT_LE(max_difference(gradient, expected.defined() ? expected : at::zeros_like(gradient)), 1e-8) << name;
  }
}

/// Loss and gradients of the network that leaves out most against a network that leaves out nothing.
void expect_least_work_matches_a_dense_mask(const TinyShape& shape, const Batch& batch) {
  const DitNetwork network(tiny_config(shape), shape.max_blocks, least_work(shape));
  const auto parameters = recording(random_parameters(network.units(), 5, at::kDouble));
  const auto outputs = run_network(network, parameters, batch);
  testing::DenseDit dense(shape, parameters);
  const auto want = dense.loss(batch);
  EXPECT_LE(max_difference(outputs.loss, want), kExact);
  const auto got_grads = gradients(outputs.loss, parameters), want_grads = gradients(want, parameters);
  for (const auto& [name, grad] : want_grads) EXPECT_LE(max_difference(got_grads.at(name), grad), kExact) << name;
}

TEST_P(DitTest, CollapsedPadsAndSharedPromptsChangeNeitherLossNorGradients) {
  const auto batch = tiny_batch(GetParam(), 3, at::kDouble);
  expect_least_work_matches_a_dense_mask(GetParam(),
                                         testing::with_prompts(batch, {{0, 9}, {1, 20}, {0, 9}}, testing::kTinyText));
}

TEST_P(DitTest, TrimmingChangesNeitherLossNorGradients) {
  const auto batch = tiny_batch(GetParam(), 2, at::kDouble);
  const DitNetwork trimmed(tiny_config(GetParam()), GetParam().max_blocks, options_for(GetParam(), true));
  const DitNetwork whole(tiny_config(GetParam()), GetParam().max_blocks, options_for(GetParam(), false));
  ASSERT_LT(trimmed.layout(batch).tokens(), whole.layout(batch).tokens());
  const auto parameters = recording(random_parameters(trimmed.units(), 6, at::kDouble));
  const auto a = run_network(trimmed, parameters, batch), b = run_network(whole, parameters, batch);
  EXPECT_LE(max_difference(a.loss, b.loss), kExact);
  const auto a_grads = gradients(a.loss, parameters), b_grads = gradients(b.loss, parameters);
  for (const auto& [name, grad] : b_grads) EXPECT_LE(max_difference(a_grads.at(name), grad), kExact) << name;
}

TEST_P(DitTest, CleanLatentsOfTheLastBlockReachNoOutput) {
  auto batch = tiny_batch(GetParam(), 1, at::kDouble);
  const DitNetwork network(tiny_config(GetParam()), GetParam().max_blocks, options_for(GetParam(), false));
  const auto parameters = random_parameters(network.units(), 6, at::kDouble);
  const auto before = run_network(network, parameters, batch);
  auto clean = batch.at(batch_keys::kCleanLatents).clone();
  const auto nfpb = GetParam().frames_per_block;
  clean.narrow(2, clean.size(2) - nfpb, nfpb).fill_(17.0);
  batch[batch_keys::kCleanLatents] = clean;
  EXPECT_TRUE(at::equal(run_network(network, parameters, batch).loss, before.loss));
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, DitTest,
    ::testing::Values(
        TinyShape{.name = "two_blocks"}, TinyShape{.name = "one_block", .blocks = 1, .max_blocks = 4},
        TinyShape{.name = "short_window", .blocks = 4, .max_blocks = 2},
        TinyShape{.name = "image_to_video", .blocks = 3, .max_blocks = 4, .image_to_video = true},
        TinyShape{.name = "two_states", .actions_per_block = 4, .states_per_block = 2},
        TinyShape{.name = "decoupled", .blocks = 3, .max_blocks = 3, .decoupled = true},
        TinyShape{.name = "decoupled_two_states", .actions_per_block = 4, .states_per_block = 2, .decoupled = true},
        TinyShape{.name = "one_frame_blocks", .blocks = 3, .frames_per_block = 1, .max_blocks = 3}),
    [](const auto& param_info) { return param_info.param.name; });

class DitNetworkTest : public ::testing::Test {
 protected:
  const TinyShape shape_{.name = "two_blocks"};
  const DitNetwork network_{tiny_config(shape_), shape_.max_blocks};
};

TEST_F(DitNetworkTest, SamplesOfABatchDoNotTouchEachOther) {
  const auto parameters = random_parameters(network_.units(), 5, at::kDouble);
  const auto together = run_network(network_, parameters, tiny_batch(shape_, 3, at::kDouble));
  for (std::int64_t b = 0; b < 3; ++b) {
    const auto alone =
        run_network(network_, parameters, tiny_batch(shape_, 1, at::kDouble, static_cast<std::uint64_t>(b)));
    for (const auto& [name, value] : alone.predictions) {
      EXPECT_LE(max_difference(together.predictions.at(name).narrow(0, b, 1), value), kExact)
          << name << " of sample " << b;
    }
  }
}

TEST_F(DitNetworkTest, AnyPromptsMayBeCollapsedAndShared) {
  const auto batch = tiny_batch(shape_, 3, at::kDouble);
  for (const auto& prompts : testing::prompt_sets(12)) {
    std::string text;
    for (const auto& p : prompts) text += std::to_string(p.id) + ":" + std::to_string(p.tokens) + " ";
    SCOPED_TRACE(text);
    expect_least_work_matches_a_dense_mask(shape_, testing::with_prompts(batch, prompts, testing::kTinyText));
  }
}

TEST_F(DitNetworkTest, TwoRunsGiveTheSameBits) {
  const auto parameters = recording(random_parameters(network_.units(), 5, at::kFloat));
  const auto batch = tiny_batch(shape_, 2, at::kFloat);
  const auto a = run_network(network_, parameters, batch), b = run_network(network_, parameters, batch);
  EXPECT_TRUE(at::equal(a.loss, b.loss));
  const auto a_grads = gradients(a.loss, parameters), b_grads = gradients(b.loss, parameters);
  for (const auto& [name, grad] : a_grads) EXPECT_TRUE(at::equal(grad, b_grads.at(name))) << name;
}

TEST_F(DitNetworkTest, ARecomputedBlockGivesTheSameBitsAsTheFirstPass) {
  const auto parameters = recording(random_parameters(network_.units(), 5, at::kFloat));
  const auto batch = tiny_batch(shape_, 2, at::kFloat);
  Carry carry;
  {
    const c10::NoGradGuard no_grad;
    carry = network_.prologue(testing::view_of(network_.units()[0], parameters), batch);
  }
  for (std::int64_t i = 0; i < 2; ++i) {
    const auto view = testing::view_of(network_.units()[static_cast<std::size_t>(i) + 1], parameters);
    at::Tensor first;
    {
      const c10::NoGradGuard no_grad;
      first = network_.block(i, view, carry, batch);
    }
    Carry detached{carry.x.detach().clone().set_requires_grad(true), {}};
    for (const auto& c : carry.conditioning)
      detached.conditioning.push_back(c.detach().clone().set_requires_grad(c.is_floating_point()));
    const auto again = network_.block(i, view, detached, batch);
    EXPECT_TRUE(again.requires_grad());
    EXPECT_TRUE(at::equal(first, again)) << "block " << i;
    carry.x = first;
  }
}

TEST_F(DitNetworkTest, WithoutTargetsItPredictsAndHasNoLoss) {
  auto batch = tiny_batch(shape_, 1, at::kFloat);
  batch.erase(batch_keys::kVideoTarget);
  batch.erase(batch_keys::kActionTarget);
  const auto outputs = run_network(network_, random_parameters(network_.units(), 5, at::kFloat), batch);
  EXPECT_FALSE(outputs.loss.defined());
  EXPECT_TRUE(outputs.metrics.empty());
  EXPECT_EQ(outputs.predictions.at(batch_keys::kVideoVelocity).sizes(), batch.at(batch_keys::kNoisyLatents).sizes());
  EXPECT_EQ(outputs.predictions.at(batch_keys::kActionVelocity).sizes(), batch.at(batch_keys::kNoisyActions).sizes());
}

TEST_F(DitNetworkTest, MetricsAddUpToTheLoss) {
  const auto outputs =
      run_network(network_, random_parameters(network_.units(), 5, at::kDouble), tiny_batch(shape_, 2, at::kDouble));
  EXPECT_LE(max_difference(outputs.metrics.at("dynamics_loss") + outputs.metrics.at("action_loss"), outputs.loss),
            1e-14);
  EXPECT_TRUE(at::equal(outputs.metrics.at("loss"), outputs.loss));
}

TEST_F(DitNetworkTest, ASampleOfWeightZeroAddsNothingAndTheMeanKeepsItsDivisor) {
  const auto parameters = recording(random_parameters(network_.units(), 5, at::kDouble));
  auto two = tiny_batch(shape_, 2, at::kDouble);
  two[batch_keys::kSampleWeight] = at::tensor({1.0F, 0.0F});
  const auto masked = run_network(network_, parameters, two);
  const auto alone = run_network(network_, parameters, tiny_batch(shape_, 1, at::kDouble));
  EXPECT_LE(max_difference(masked.loss * 2, alone.loss), kExact);
  const auto got = gradients(masked.loss, parameters), want = gradients(alone.loss, parameters);
  for (const auto& [name, grad] : want) EXPECT_LE(max_difference(got.at(name) * 2, grad), kExact) << name;
}

TEST_F(DitNetworkTest, Bf16ParametersRunCloseToFp32) {
  const auto narrow = random_parameters(network_.units(), 5, at::kBFloat16);
  NamedTensors exact;
  for (const auto& [name, tensor] : narrow) exact[name] = tensor.to(at::kFloat);
  const auto batch = tiny_batch(shape_, 2, at::kFloat);
  const auto parameters = recording(narrow);
  const auto got = run_network(network_, parameters, batch), want = run_network(network_, exact, batch);
  const auto& v_video = got.predictions.at(batch_keys::kVideoVelocity);
  EXPECT_EQ(v_video.scalar_type(), at::kBFloat16);
  EXPECT_EQ(got.loss.scalar_type(), at::kFloat);
  // two blocks of bf16 rounding are about one percent; the inputs are rounded too
  EXPECT_LE(testing::relative_l2(v_video, want.predictions.at(batch_keys::kVideoVelocity)), 0.04);
  for (const auto& [name, grad] : gradients(got.loss, parameters)) {
    EXPECT_TRUE(grad.isfinite().all().item<bool>()) << name;
  }
}

TEST_F(DitNetworkTest, IdsThatItsTimeRowsCannotHoldAreRefused) {
  const auto parameters = random_parameters(network_.units(), 5, at::kFloat);
  auto batch = tiny_batch(shape_, 1, at::kFloat);
  batch[batch_keys::kActionIds] = batch.at(batch_keys::kActionIds) + 1;
  EXPECT_THROW(run_network(network_, parameters, batch), c10::Error);
}

TEST_F(DitNetworkTest, AMissingTensorIsNamed) {
  const auto parameters = random_parameters(network_.units(), 5, at::kFloat);
  auto batch = tiny_batch(shape_, 1, at::kFloat);
  batch.erase(batch_keys::kClip);
  try {
    (void)run_network(network_, parameters, batch);
    FAIL() << "a batch without image features was accepted";
  } catch (const c10::Error& error) {
    EXPECT_NE(std::string(error.what()).find("\"clip\""), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace troupe::model
