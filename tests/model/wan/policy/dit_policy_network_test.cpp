// The objective over DreamZero's transformer: ratios, gradients, rows that are left out, and sharded training.
#include "model/wan/policy/dit_policy_network.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/model/shard/training_harness.h"
#include "tests/model/wan/network_run.h"
#include "tests/model/wan/policy/dreamzero_fixture.h"
#include "tests/support/tensor_checks.h"

namespace troupe::model {
namespace {

struct TapeRun {
  MicroResult result;
  testing::NamedTensors gradients;
};

/// Loss, metrics and gradients of one micro-batch as the engine finds them.
TapeRun run_of(const ActedDreamZero& acted, const Batch& batch) {
  // as slots lie: programs write joined parameters' gradients as one; NaN, so that a miss shows
  std::vector<ParamView> gradients;
  for (const auto& unit : acted.net->units())
    gradients.push_back(testing::laid_out(unit.params, at::kFloat, std::nan("")));
  TapeRun run{
      testing::run_tape(*acted.net->objective("policy"), acted.params, acted.net->prepare(batch), 1.0, gradients), {}};
  for (const auto& view : gradients) run.gradients.insert(view.tensors().begin(), view.tensors().end());
  return run;
}

TEST(DitPolicyNetworkTest, UnchangedWeightsHaveARatioOfOne) {
  for (const bool image_to_video : {false, true}) {
    const auto acted = testing::act_dreamzero(testing::dreamzero_case(image_to_video), 12);
    const auto run = run_of(acted, testing::learning_batch(acted));
    EXPECT_NEAR(run.result.metrics.at("actor/ratio"), 1.0, 1e-3);
    EXPECT_NEAR(run.result.metrics.at("actor/approx_kl"), 0.0, 1e-3);
    EXPECT_EQ(run.result.metrics.at("nonfinite_samples"), 0.0);
  }
}

TEST(DitPolicyNetworkTest, GradientsAreThoseOfOneGraphOverTheWholeChain) {
  for (const bool image_to_video : {false, true}) {
    const auto acted = testing::act_dreamzero(testing::dreamzero_case(image_to_video), 6);
    const auto batch = testing::learning_batch(acted, 0.1);
    const auto run = run_of(acted, batch);
    testing::NamedTensors parameters;
    for (const auto& view : acted.params) parameters.insert(view.tensors().begin(), view.tensors().end());
    const auto plain = testing::run_network(*acted.net->objective("policy"), parameters, acted.net->prepare(batch));
    EXPECT_NEAR(run.result.loss, plain.loss.item<double>(), 1e-5);
    double moved = 0;
    const auto want = testing::gradients(plain.loss, parameters);
    double largest = 0;
    for (const auto& [name, gradient] : want) largest = std::max(largest, testing::largest(gradient));
    for (const auto& [name, gradient] : want) {
      testing::expect_near(run.gradients.at(name), gradient, 1e-4 * largest, name);
      moved += testing::largest(gradient) > 0 ? 1 : 0;
    }
    EXPECT_GT(moved, 0.8 * static_cast<double>(want.size())) << "all but the video's head learn";
  }
}

/// A loss whose gradient is known to be right: central differences along one direction, in f64.
TEST(DitPolicyNetworkTest, TheGradientIsTheSlopeOfTheLoss) {
  const auto acted = testing::act_dreamzero(testing::dreamzero_case(), 4);
  const auto network = acted.net->objective("policy");
  auto batch = acted.net->prepare(testing::learning_batch(acted, 0.05));
  for (auto& [name, tensor] : batch) tensor = tensor.is_floating_point() ? tensor.to(at::kDouble) : tensor;
  testing::NamedTensors at_point, direction;
  for (const auto& view : acted.params) {
    for (const auto& [name, tensor] : view.tensors()) {
      at_point[name] = tensor.detach().to(at::kDouble);
      direction[name] = seeded_noise(std::hash<std::string>()(name), tensor.sizes()).to(at::kDouble);
    }
  }
  const auto loss_at = [&](double distance) {
    testing::NamedTensors parameters;
    for (const auto& [name, tensor] : at_point) parameters[name] = tensor + distance * direction.at(name);
    return testing::run_network(*network, parameters, batch).loss.item<double>();
  };
  const auto leaves = testing::recording(at_point);
  double slope = 0;
  for (const auto& [name, gradient] : testing::gradients(testing::run_network(*network, leaves, batch).loss, leaves))
    slope += (gradient * direction.at(name)).sum().item<double>();
  constexpr double kStep = 1e-6;
  const double want = (loss_at(kStep) - loss_at(-kStep)) / (2 * kStep);
  EXPECT_NEAR(slope, want, 1e-4 * std::abs(want));
  EXPECT_GT(std::abs(want), 1e-4);
}

/// A row with a number that is not finite weighs as one whose actions were not executed.
TEST(DitPolicyNetworkTest, ARowThatIsNotFiniteIsLeftOutAndCounted) {
  const auto acted = testing::act_dreamzero(testing::dreamzero_case(true), 6);
  const auto clean = testing::learning_batch(acted, 0.1);
  auto without = clean;
  without[rl_keys::kMask] = clean.at(rl_keys::kMask).clone();
  without[rl_keys::kMask][2].fill_(false);
  const auto want = run_of(acted, without);
  for (const std::string name : {"extra.next", "extra.actions", "extra.video", rl_keys::kState}) {
    auto broken = clean;
    broken[name] = clean.at(name).clone();
    broken[name][2].fill_(std::numeric_limits<float>::quiet_NaN());
    const auto got = run_of(acted, broken);
    EXPECT_EQ(got.result.metrics.at("nonfinite_samples"), 1.0) << name;
    EXPECT_NEAR(got.result.loss, want.result.loss, 1e-5) << name;
    for (const auto& [parameter, gradient] : want.gradients)
      testing::expect_near(got.gradients.at(parameter), gradient, 1e-4, name + ": " + parameter);
  }
}

TEST(DitPolicyNetworkTest, ActionsThatWereNotExecutedHaveNoPart) {
  const auto acted = testing::act_dreamzero(testing::dreamzero_case(), 5);
  auto batch = testing::learning_batch(acted, 0.1);
  batch[rl_keys::kMask].select(1, 2).fill_(false);
  const auto want = run_of(acted, batch);
  batch["extra.next"] = batch.at("extra.next").clone();
  batch["extra.next"].select(1, 2).add_(1.0);
  const auto got = run_of(acted, batch);
  EXPECT_NEAR(got.result.loss, want.result.loss, 1e-6);
  for (const auto& [name, gradient] : want.gradients)
    testing::expect_near(got.gradients.at(name), gradient, 1e-6, name);
}

TEST(DitPolicyNetworkTest, AChunkThatIsShorterThanTheBlockIsItsBeginning) {
  const auto c = testing::dreamzero_case();
  const auto acted = testing::act_dreamzero(c, 4);
  const DitPolicyNetwork shorter(c.model, /*max_blocks=*/1,
                                 shifted_levels(c.policy.flow.denoise_steps, InferOptions().shift), c.shape.action_dim,
                                 make_policy_gradient_options(c.algorithm, 2, 0));
  ASSERT_EQ(shorter.logp_width(), 2 * c.shape.action_dim);
  const auto got = shorter.logp(acted.views, acted.net->prepare(acted.rows));
  testing::expect_near(got, acted.result.logp.narrow(1, 0, shorter.logp_width()), 1e-4, "log-probabilities");
}

/// Training whose first step has ratios of one: rows are those of the weights that the engine starts with.
TrainingRun training_run(at::ScalarType dtype) {
  const auto c = testing::dreamzero_case();
  TrainingRun run{.steps = 3, .lr = 1e-3, .network = testing::make_dreamzero(c).value()->objective("policy")};
  run.options.param_dtype = dtype;
  run.batch = [c](std::int64_t number) {
    const auto acted = testing::act_dreamzero(c, 2, false, /*spread=*/0, static_cast<std::uint64_t>(50 + number));
    return acted.net->prepare(testing::learning_batch(acted, 0, static_cast<std::uint64_t>(70 + number)));
  };
  return run;
}

TEST(DitPolicyEngineTest, RanksSlotsAndLevelsChangeNoBit) {
  for (const auto dtype : {at::kFloat, at::kBFloat16}) {
    auto alone = training_run(dtype);
    alone.micro_batches = 2;
    const auto want = train(alone);
    auto run = training_run(dtype);
    run.world = 2;
    for (const int slots : {1, 64}) {
      for (const auto level : {RecomputeLevel::none, RecomputeLevel::attention, RecomputeLevel::full}) {
        run.options.param_slots = slots;
        run.options.recompute = {level};
        run.options.whole_gradients = slots == 64;
        const auto got = train(run);
        EXPECT_EQ(got.losses, want.losses) << slots << " slots, " << enum_name(level);
        EXPECT_TRUE(got.state == want.state) << slots << " slots, " << enum_name(level);
      }
    }
    EXPECT_GT(want.norms.front(), 0.0);
  }
}

}  // namespace
}  // namespace troupe::model
