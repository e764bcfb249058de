// Timesteps of the three noise modes and the dtype of mixing and targets.
#include "model/wan/training_inputs.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <numeric>

#include "base/random.h"
#include "model/loss/beta_distribution.h"
#include "model/wan/dit.h"
#include "tests/model/wan/network_run.h"
#include "tests/model/wan/tiny_model.h"

namespace troupe::model {
namespace {

namespace key = batch_keys;

constexpr std::int64_t kFrames = 5, kFramesPerBlock = 2, kActions = 8;

Batch draw(const NoiseConfig& noise, std::int64_t count, std::uint64_t first = 0, NoiseMode mode = NoiseMode::train,
           at::ScalarType dtype = at::kFloat) {
  std::vector<std::uint64_t> positions(static_cast<std::size_t>(count));
  std::iota(positions.begin(), positions.end(), first);
  const auto latents = keyed_noise(5, 900, positions, {2, kFrames, 2, 2}).to(dtype);
  const auto actions = keyed_noise(5, 901, positions, {kActions, 3}).tanh().to(dtype);
  return make_training_inputs(latents, actions, positions, 7, mode, kFramesPerBlock, noise);
}

const NoiseConfig kUniform, kHighNoise{.high_noise_emphasis = true},
    kDecoupled{.decouple_video_action = true, .high_noise_emphasis = true};

/// Share of ids below `bound`.
double share_below(const at::Tensor& ids, std::int64_t bound) {
  return ids.lt(bound).to(at::kDouble).mean().item<double>();
}

TEST(TrainingInputsTest, EveryModeTiesVideoIdsInsideBlocksAndKeepsFrameZeroFree) {
  for (const auto& noise : {kUniform, kHighNoise, kDecoupled}) {
    const auto ids = draw(noise, 200).at(key::kVideoIds);
    EXPECT_TRUE(at::equal(ids, tie_video_ids(ids, kFramesPerBlock)));
    EXPECT_LT(ids.select(1, 0).eq(ids.select(1, 1)).sum().item<int>(), 20);
    EXPECT_GE(ids.min().item<int>(), 0);
    EXPECT_LE(ids.max().item<int>(), 999);
  }
}

TEST(TrainingInputsTest, CoupledActionsTakeTheirBlocksTimestep) {
  for (const auto& noise : {kUniform, kHighNoise}) {
    const auto batch = draw(noise, 20);
    EXPECT_TRUE(at::equal(batch.at(key::kActionIds),
                          coupled_action_ids(batch.at(key::kVideoIds), kFramesPerBlock, kActions / 2)));
  }
}

TEST(TrainingInputsTest, HighNoiseIdsFollowTheBetaDistribution) {
  // id < i exactly when r > 1 - i/1000, so its share is 1 - cdf; three standard errors of 3 x 4000 draws
  const auto ids = draw(kHighNoise, 4000).at(key::kVideoIds).index_select(1, at::tensor({0, 1, 3}));
  for (const std::int64_t bound : {50, 200, 500, 800}) {
    const double share = 1 - beta_cdf(1 - static_cast<double>(bound) / 1000, 3, 1);
    EXPECT_NEAR(share_below(ids, bound), share, 3 * std::sqrt(share * (1 - share) / 12000)) << bound;
  }
  const NoiseConfig general{.decouple_video_action = true, .video_noise_beta_alpha = 2, .video_noise_beta_beta = 1.5};
  const auto others = draw(general, 4000).at(key::kVideoIds).index_select(1, at::tensor({0, 1, 3}));
  for (const std::int64_t bound : {200, 500, 800}) {
    const double share = 1 - beta_cdf(1 - static_cast<double>(bound) / 1000, 2, 1.5);
    EXPECT_NEAR(share_below(others, bound), share, 3 * std::sqrt(share * (1 - share) / 12000)) << bound;
  }
}

TEST(TrainingInputsTest, DecoupledActionsHaveUniformTimestepsOfTheirOwn) {
  const auto batch = draw(kDecoupled, 2000);
  const auto& ids = batch.at(key::kActionIds);
  for (const std::int64_t bound : {100, 500, 900}) {
    const double share = static_cast<double>(bound) / 1000;
    EXPECT_NEAR(share_below(ids, bound), share, 3 * std::sqrt(share * (1 - share) / (2000.0 * kActions))) << bound;
  }
  EXPECT_LT(ids.select(1, 0).eq(ids.select(1, 1)).sum().item<int>(), 20);
  // the noise follows each action's own sigma
  const auto sigma = make_flow_schedule().sigmas.index({ids}).unsqueeze(2);
  const auto clean = batch.at(key::kNoisyActions) - sigma * batch.at(key::kActionTarget);
  EXPECT_LE(clean.abs().max().item<double>(), 1.0 + 1e-5);
}

TEST(TrainingInputsTest, DrawsOfEveryModeDependOnThePositionAlone) {
  for (const auto& noise : {kUniform, kHighNoise, kDecoupled}) {
    const auto together = draw(noise, 4, 10), alone = draw(noise, 1, 12);
    for (const auto& [name, value] : alone) {
      EXPECT_TRUE(at::equal(together.at(name).narrow(0, 2, 1), value)) << name;
    }
    EXPECT_FALSE(at::equal(draw(noise, 4).at(key::kActionIds), draw(noise, 4, 0, NoiseMode::eval).at(key::kActionIds)));
  }
}

TEST(TrainingInputsTest, Bf16InputsAreRoundedBeforeTheTargetIsMade) {
  Batch inputs{{key::kCleanLatents, at::rand({1, 2, kFrames, 2, 2})},
               {key::kAction, at::rand({1, kActions, 3})},
               {key::kActionMask, at::ones({1, kActions, 3}, at::kBool)}};
  const auto exact = inputs;
  cast_inputs(inputs, at::kBFloat16);
  EXPECT_EQ(inputs.at(key::kActionMask).scalar_type(), at::kBool);
  const std::vector<std::uint64_t> positions{3};
  const auto batch = make_training_inputs(inputs.at(key::kCleanLatents), inputs.at(key::kAction), positions, 7,
                                          NoiseMode::train, kFramesPerBlock);
  const auto eps = keyed_noise(7, rng_stream::action_noise, positions, {kActions, 3}).to(at::kBFloat16);
  const auto want = eps - exact.at(key::kAction).to(at::kBFloat16);
  EXPECT_EQ(batch.at(key::kActionTarget).scalar_type(), at::kBFloat16);
  EXPECT_TRUE(at::equal(batch.at(key::kActionTarget), want));
  // each operation of the mixing rounds: (1 - s) x0, s eps, their sum
  const auto s = make_flow_schedule().sigmas.index({batch.at(key::kActionIds)}).unsqueeze(2).to(at::kBFloat16);
  const auto x0 = exact.at(key::kAction).to(at::kBFloat16);
  EXPECT_TRUE(at::equal(batch.at(key::kNoisyActions), (1.0 - s) * x0 + s * eps));
}

TEST(TrainingInputsTest, ADecoupledBatchRunsThroughADecoupledNetworkOnly) {
  const testing::TinyShape shape{.name = "decoupled", .decoupled = true};
  auto batch = testing::tiny_batch(shape, 2, at::kFloat);
  const std::vector<std::uint64_t> positions{0, 1};
  const auto inputs = make_training_inputs(batch.at(key::kCleanLatents), batch.at(key::kNoisyActions).tanh(), positions,
                                           7, NoiseMode::train, shape.frames_per_block, kDecoupled);
  for (const auto& [name, tensor] : inputs) batch[name] = tensor;
  const DitNetwork decoupled(testing::tiny_config(shape), 2, {.decoupled_action_timesteps = true});
  const auto parameters = testing::random_parameters(decoupled.units(), 3, at::kFloat);
  EXPECT_TRUE(std::isfinite(testing::run_network(decoupled, parameters, batch).loss.item<double>()));
  const DitNetwork coupled(testing::tiny_config(shape), 2);
  EXPECT_THROW(testing::run_network(coupled, parameters, batch), c10::Error);
}

}  // namespace
}  // namespace troupe::model
