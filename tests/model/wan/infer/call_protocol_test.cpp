// Counts of the call protocol, options, noise levels and the key/value cache.
#include "model/wan/infer/call_protocol.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include "model/wan/infer/denoise.h"
#include "model/wan/infer/infer_options.h"
#include "tests/support/tensor_checks.h"

namespace troupe::model {
namespace {

using Frames = std::vector<std::int64_t>;

const CallProtocol kReleased{.frames_per_block = 2, .max_blocks = 4, .stride_t = 4};

TEST(CallProtocolTest, TheReleasedModelTakesOneFourEightOrNineFrames) {
  EXPECT_EQ(kReleased.accepted(), (Frames{1, 4, 8, 9}));
  EXPECT_TRUE(kReleased.accepts(8));
  EXPECT_FALSE(kReleased.accepts(5));
  EXPECT_FALSE(kReleased.accepts(0));
  EXPECT_EQ(kReleased.still_frames(), 33);
}

TEST(CallProtocolTest, EveryAcceptedCountFillsAClip) {
  for (const std::int64_t nfpb : {1, 2, 3, 4, 6}) {
    const CallProtocol protocol{.frames_per_block = nfpb, .max_blocks = 2, .stride_t = 4};
    for (const auto frames : protocol.accepted()) {
      if (frames == 1) continue;
      EXPECT_EQ(static_cast<std::int64_t>(protocol.clip_of(frames).size()), protocol.clip_frames())
          << frames << " frames, " << nfpb << " per block";
    }
  }
}

TEST(CallProtocolTest, FewerFramesAreRepeatedAndTheFirstStandsInFront) {
  EXPECT_EQ(kReleased.clip_of(4), (Frames{0, 0, 0, 1, 1, 2, 2, 3, 3}));
  EXPECT_EQ(kReleased.clip_of(8), (Frames{0, 0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(kReleased.clip_of(9), (Frames{0, 1, 2, 3, 4, 5, 6, 7, 8}));
}

TEST(CallProtocolTest, AnEpisodeStartsFromTheNewestFrameOfFourOrNine) {
  EXPECT_EQ(CallProtocol::condition_frame(1), 0);
  EXPECT_EQ(CallProtocol::condition_frame(4), 3);
  EXPECT_EQ(CallProtocol::condition_frame(8), 0);
  EXPECT_EQ(CallProtocol::condition_frame(9), 8);
}

TEST(CallProtocolTest, AnEpisodeEndsWithItsPromptASingleFrameOrTheWindow) {
  EXPECT_TRUE(kReleased.starts_episode(8, 0, true)) << "nothing seen yet";
  EXPECT_TRUE(kReleased.starts_episode(8, 1, false)) << "another prompt";
  EXPECT_TRUE(kReleased.starts_episode(1, 3, true)) << "a single frame";
  EXPECT_TRUE(kReleased.starts_episode(8, 7, true)) << "nine frames are full";
  EXPECT_FALSE(kReleased.starts_episode(8, 5, true));
}

TEST(InferOptionsTest, ValuesWithoutMeaningAreRefusedByName) {
  EXPECT_TRUE(check_options({}).has_value());
  EXPECT_THAT(check_options({.steps = 0}).error().message(), ::testing::HasSubstr("denoising steps"));
  EXPECT_THAT(check_options({.shift = 0}).error().message(), ::testing::HasSubstr("shift"));
  EXPECT_THAT(check_options({.cfg_scale = -1}).error().message(), ::testing::HasSubstr("cfg_scale"));
  EXPECT_THAT(check_options({.steps = 4, .skip = StepSkip::steps_8}).error().message(),
              ::testing::HasSubstr("16 denoising steps"));
  EXPECT_TRUE(check_options({.steps = 4, .skip = StepSkip::dynamic}).has_value());
  EXPECT_EQ(InferOptions{.cfg_scale = 1.0}.branches(), 1);
}

TEST(StepSkipTest, NamesAreReadAndOthersRefused) {
  EXPECT_EQ(to_step_skip("none").value(), StepSkip::none);
  EXPECT_EQ(to_step_skip("8").value(), StepSkip::steps_8);
  EXPECT_EQ(to_step_skip("dynamic").value(), StepSkip::dynamic);
  EXPECT_THAT(to_step_skip("9").error().message(), ::testing::HasSubstr("none, 5, 6, 7, 8"));
}

TEST(NoiseLevelsTest, LevelsFallAndTimestepsAreTruncated) {
  for (const std::int64_t steps : {1, 2, 5, 16, 50}) {
    const auto levels = shifted_levels(steps, 5.0);
    ASSERT_EQ(levels.steps(), steps);
    EXPECT_EQ(levels.sigmas.back(), 0.0F);
    for (std::size_t i = 0; i < levels.timesteps.size(); ++i) {
      EXPECT_GT(levels.sigmas[i], levels.sigmas[i + 1]);
      EXPECT_LT(std::abs(levels.sigmas[i] * 1000.0F - static_cast<float>(levels.timesteps[i])), 1.001F);
    }
  }
}

TEST(UniPcTest, AStraightFlowEndsAtItsSampleForAnyNumberOfSteps) {
  const auto noise = seeded_noise(3, {2, 5}), sample = seeded_noise(4, {2, 5});
  for (const std::int64_t steps : {1, 2, 3, 7, 16}) {
    UniPcSampler sampler(std::make_shared<const UniPcPlan>(shifted_levels(steps, 5.0)), noise);
    while (!sampler.done()) sampler.advance(noise - sample);
    // the first level is 0.9998, so the noise that is left there shifts the end by as much
    EXPECT_LE(testing::max_difference(sampler.sample(), sample), 2e-3) << steps << " steps";
  }
}

TEST(UniPcTest, ASampleIsNeverChangedInPlace) {
  const auto noise = seeded_noise(3, {4}), copy = noise.clone();
  UniPcSampler sampler(std::make_shared<const UniPcPlan>(shifted_levels(2, 5.0)), noise);
  sampler.advance(at::ones({4}));
  EXPECT_TRUE(at::equal(noise, copy));
  sampler.advance(at::ones({4}));
  EXPECT_THROW(sampler.advance(at::ones({4})), c10::Error);
}

TEST(SeededNoiseTest, OneSeedGivesTheSameNumbersAgain) {
  const auto a = seeded_noise(1140, {1, 3, 2, 4, 4}), b = seeded_noise(1140, {1, 96});
  EXPECT_TRUE(at::equal(a.flatten(), b.flatten()));
  EXPECT_FALSE(at::equal(a, seeded_noise(1141, a.sizes())));
}

/// What PyTorch prints for torch.manual_seed(0); torch.randn(...), which draws tensors below 16 elements another way.
TEST(SeededNoiseTest, NumbersAreThoseOfTorchRandn) {
  const auto large = at::tensor({-1.1258F, -1.1524F, -0.2506F, -0.4339F, 0.8487F, 0.6920F, -0.3160F, -2.1152F});
  const auto small = at::tensor({1.5410F, -0.2934F, -2.1788F, 0.5684F, -1.0845F, -1.3986F});
  testing::expect_near(seeded_noise(0, {4, 4}).flatten().narrow(0, 0, 8), large, 1e-4, "16 numbers");
  testing::expect_near(seeded_noise(0, {2, 3}).flatten(), small, 1e-4, "6 numbers");
}

}  // namespace
}  // namespace troupe::model
