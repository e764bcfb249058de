// Euler's method: against its formula, against UniPC where both are of order 1, and inside a whole run.
#include "model/wan/infer/euler.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "model/wan/infer/denoise.h"
#include "tests/model/wan/infer/infer_fixture.h"
#include "tests/support/golden_folder.h"
#include "tests/support/safetensors_file.h"
#include "tests/support/tensor_checks.h"

namespace troupe::model {
namespace {

constexpr double kEulerShift = 5.0;

/// x_0 + sum_i (sigma_{i+1} - sigma_i) v_i over the first `steps` velocities, in f64.
at::Tensor by_formula(const NoiseLevels& levels, const at::Tensor& start, const at::Tensor& velocities,
                      std::int64_t steps) {
  auto x = start.to(at::kDouble);
  for (std::int64_t i = 0; i < steps; ++i) {
    const auto k = static_cast<std::size_t>(i);
    x = x + (static_cast<double>(levels.sigmas[k + 1]) - static_cast<double>(levels.sigmas[k])) *
                velocities[i].to(at::kDouble);
  }
  return x;
}

TEST(EulerTest, EveryStepAddsTheVelocityTimesTheChangeOfTheNoiseLevel) {
  const auto levels = shifted_levels(4, kEulerShift);
  const auto start = seeded_noise(1, {3, 5}), velocities = seeded_noise(2, {4, 3, 5});
  EulerSampler sampler(levels, start);
  for (std::int64_t i = 0; i < 4; ++i) {
    EXPECT_FALSE(sampler.done());
    sampler.advance(velocities[i]);
    testing::expect_near(sampler.sample().to(at::kDouble), by_formula(levels, start, velocities, i + 1), 1e-6,
                         "step " + std::to_string(i));
  }
  EXPECT_TRUE(sampler.done());
  EXPECT_THROW(sampler.advance(velocities[0]), c10::Error);
}

TEST(EulerTest, AStraightFlowEndsAtItsSampleForAnyNumberOfSteps) {
  const auto noise = seeded_noise(3, {2, 5}), sample = seeded_noise(4, {2, 5});
  for (const std::int64_t steps : {1, 2, 4, 16}) {
    EulerSampler sampler(shifted_levels(steps, kEulerShift), noise);
    while (!sampler.done()) sampler.advance(noise - sample);
    // the first level is 0.9998, so that much of the noise is left
    EXPECT_LE(testing::max_difference(sampler.sample(), sample), 2e-3) << steps << " steps";
  }
}

TEST(EulerTest, OneStepIsUniPcsOfOrderOne) {
  const auto start = seeded_noise(5, {7}), velocity = seeded_noise(6, {7});
  for (const std::int64_t steps : {1, 4, 16}) {
    const auto levels = shifted_levels(steps, kEulerShift);
    EulerSampler euler(levels, start);
    UniPcSampler unipc(std::make_shared<const UniPcPlan>(levels), start);
    euler.advance(velocity);
    unipc.advance(velocity);
    testing::expect_near(euler.sample(), unipc.sample(), 1e-5, std::to_string(steps) + " steps");
  }
}

TEST(EulerTest, AVelocityOfAnotherShapeIsRefused) {
  EulerSampler sampler(shifted_levels(2, kEulerShift), seeded_noise(1, {4}));
  EXPECT_THROW(sampler.advance(at::ones({3})), c10::Error);
}

/// The cases of kind unipc that record runs.
std::vector<GoldenCase> run_cases() {
  auto cases = golden_cases("dit", "unipc");
  std::erase_if(cases, [](const GoldenCase& c) { return !c.json.contains("meta"); });
  return cases;
}

class GoldenEulerTest : public ::testing::TestWithParam<GoldenCase> {};

/// Recorded velocities of full size, against the formula.
TEST_P(GoldenEulerTest, RecordedVelocitiesAreSummedOverTheNoiseLevels) {
  const auto in = testing::with_prefix(testing::load_safetensors(GetParam().tensors()), "in.");
  int compared = 0;
  for (const auto& [name, velocity] : in) {
    const auto dot = name.find(".velocity");
    if (dot == std::string::npos) continue;
    const auto run = name.substr(0, dot);
    const auto steps = velocity.size(0);
    const auto levels = shifted_levels(steps, kEulerShift);
    EulerSampler sampler(levels, in.at(run + ".sample"));
    for (std::int64_t i = 0; i < steps; ++i) sampler.advance(velocity[i]);
    testing::expect_near(sampler.sample().to(at::kDouble), by_formula(levels, in.at(run + ".sample"), velocity, steps),
                         2e-5, run);
    ++compared;
  }
  EXPECT_GT(compared, 0) << "the case names runs and records no velocity";
}

INSTANTIATE_TEST_SUITE_P(Cases, GoldenEulerTest, ::testing::ValuesIn(run_cases()), golden_case_name);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GoldenEulerTest);

/// A whole run of the network: every sample is the one before it plus the guided velocity times the change of level.
TEST(EulerRunTest, EachSampleFollowsFromTheVelocityThatTheNetworkGaveThere) {
  const InferSetup setup({.name = "plain", .blocks = 3, .max_blocks = 3}, 1, at::kDouble);
  auto dit = setup.make();
  const InferOptions options{.sampler = DenoiseSampler::euler, .steps = 4, .cfg_scale = 3.0, .decouple_noise = true};
  const Denoiser denoiser(options);
  const auto episode = setup.episode(dit, 0, 1, 0, options.branches());
  const auto noisy = setup.noisy(0, 1, 0, 0, 0);
  const DenoiseRequest requests[] = {{episode.get(), noisy.video, noisy.actions, noisy.states}};
  auto video = noisy.video.to(at::kDouble), actions = noisy.actions.to(at::kDouble);
  std::int64_t steps = 0;
  const auto change = [](const NoiseLevels& levels, std::int64_t step) {
    const auto k = static_cast<std::size_t>(step);
    return static_cast<double>(levels.sigmas[k + 1]) - static_cast<double>(levels.sigmas[k]);
  };
  const auto done = denoiser.run(dit, requests, [&](const DenoiseStep& step) {
    ASSERT_NE(step.velocities, nullptr);
    const auto cond = step.velocities->video.select(1, 0), uncond = step.velocities->video.select(1, 1);
    video = video + (uncond + (cond - uncond) * 3.0) * change(denoiser.video_levels(), step.step);
    actions = actions + step.velocities->actions.select(1, 0) * change(denoiser.action_levels(), step.step);
    testing::expect_near(step.video, video, 1e-12, "video");
    testing::expect_near(step.actions, actions, 1e-12, "actions");
    ++steps;
  });
  EXPECT_EQ(steps, 4);
  EXPECT_GT(denoiser.video_levels().sigmas.back(), 0.7F);
  EXPECT_EQ(denoiser.action_levels().sigmas.back(), 0.0F);

  const Denoiser other(InferOptions{.steps = 4, .cfg_scale = 3.0, .decouple_noise = true});
  EXPECT_GT(testing::max_difference(other.run(dit, requests).front().actions, done.front().actions), 1e-6);
}

}  // namespace
}  // namespace troupe::model
