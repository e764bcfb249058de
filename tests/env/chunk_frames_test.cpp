// Observations that hold the frames of the chunk that ended.
#include "env/chunk_frames.h"

#include <gmock/gmock.h>

#include "tests/env/pool_run.h"

namespace troupe::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr float kGo = 0, kFinish = 1;

/// Two agents, each of which sees the number of the step, the second 100 more: as a picture and as a number.
class ClockEnv final : public Env {
 public:
  ClockEnv(EnvSpec spec, std::int64_t* drawn) : spec_(std::move(spec)), drawn_(drawn) {}
  static EnvSpec make_spec(bool on_demand) {
    EnvSpec spec;
    spec.id = "clock-v1";
    spec.observation = {{.name = "step", .shape = {1}}, {.name = "rgb.front", .shape = {1, 2, 3}}};
    spec.observation[1].dtype = EnvDType::u8;
    spec.action.low = {-1};
    spec.action.high = {1};
    spec.observes_on_demand = on_demand;
    spec.agents = 2;
    return spec;
  }
  const EnvSpec& spec() const noexcept override { return spec_; }
  Result<void> reset(std::uint64_t, StepSlot out) override {
    step_ = 0;
    return observe(out);
  }
  Result<void> step(std::span<const float> action, StepSlot out) override {
    ++step_;
    *out.terminated = action[0] == kFinish;
    return out.observation.empty() ? Result<void>() : observe(out);
  }
  Result<void> observe(StepSlot out) override {
    ++*drawn_;
    for (std::size_t agent = 0; agent < 2; ++agent) {
      const auto seen = static_cast<std::uint8_t>(step_ + 100 * agent);
      out.field<float>(0, 2)[agent] = seen;
      std::fill_n(out.field<std::uint8_t>(1, 12).data() + 6 * agent, 6, seen);
    }
    return {};
  }

 private:
  const EnvSpec spec_;
  std::int64_t* const drawn_;
  std::size_t step_ = 0;
};

class ClockFactory final : public EnvFactory {
 public:
  explicit ClockFactory(bool on_demand) : spec_(ClockEnv::make_spec(on_demand)) {}
  const EnvSpec& spec() const noexcept override { return spec_; }
  Result<std::unique_ptr<Env>> make() const override {
    return std::unique_ptr<Env>(std::make_unique<ClockEnv>(spec_, &drawn));
  }
  mutable std::int64_t drawn = 0;

 private:
  EnvSpec spec_;
};

/// A pixel of each frame that a row shows, or of its final observation.
std::vector<int> frames_of(const BlockView& view, std::int64_t row, std::int64_t count, bool final = false) {
  const auto& offsets = final ? view.layout->final_observation : view.layout->observation;
  std::vector<int> frames;
  for (std::int64_t f = 0; f < count; ++f)
    frames.push_back(view.at<std::uint8_t>(offsets[1])[(row * count + f) * 6 + 5]);
  return frames;
}

class ChunkFramesTest : public ::testing::TestWithParam<bool> {
 protected:
  std::unique_ptr<EnvPool> pool(const ChunkFrames& frames) {
    return make_pool(with_chunk_frames(clock_, frames).value(), {.chunk = 5, .exec_steps = 4});
  }
  static std::vector<float> actions(float last = kGo) {
    std::vector<float> all(2 * 5, kGo);
    all[1] = last;
    return all;
  }
  std::shared_ptr<ClockFactory> clock_ = std::make_shared<ClockFactory>(GetParam());
};

TEST_P(ChunkFramesTest, APolicyStepShowsTheFramesOfItsChunk) {
  const auto pool = this->pool({.offsets = {0, 1, 3}, .stride = 4});
  {
    const auto first = begin(*pool);
    EXPECT_THAT(frames_of(first.view(), 0, 4), ElementsAre(0, 0, 0, 0));
    EXPECT_THAT(frames_of(first.view(), 1, 4), ElementsAre(100, 100, 100, 100));
  }
  {
    const auto second = pool->step(0, actions()).value();
    EXPECT_THAT(frames_of(second.view(), 0, 4), ElementsAre(0, 1, 3, 4));
    EXPECT_THAT(frames_of(second.view(), 1, 4), ElementsAre(100, 101, 103, 104));
    EXPECT_EQ(second.view().at<float>(second.view().layout->observation[0])[1], 104) << "numbers are the newest";
  }
  const auto third = pool->step(0, actions()).value();
  EXPECT_THAT(frames_of(third.view(), 0, 4), ElementsAre(4, 5, 7, 8));
  EXPECT_EQ(clock_->drawn, GetParam() ? 1 + 3 + 3 : 1 + 4 + 4)
      << "on demand, a frame is drawn only where an observation holds it";
}

TEST_P(ChunkFramesTest, WithoutTheChunksFirstFrame) {
  const auto pool = this->pool({.offsets = {2}, .stride = 4});
  EXPECT_THAT(frames_of(begin(*pool).view(), 0, 2), ElementsAre(0, 0));
  EXPECT_THAT(frames_of(pool->step(0, actions()).value().view(), 0, 2), ElementsAre(2, 4));
  EXPECT_THAT(frames_of(pool->step(0, actions()).value().view(), 0, 2), ElementsAre(6, 8));
}

TEST_P(ChunkFramesTest, AnEpisodeThatEndsInsideAChunkRepeatsItsLastFrame) {
  const auto pool = this->pool({.offsets = {0, 1, 3}, .stride = 4});
  begin(*pool);
  (void)pool->step(0, actions());
  const auto ended = pool->step(0, actions(kFinish)).value();
  EXPECT_EQ(ended.view().done()[0], 1);
  EXPECT_THAT(frames_of(ended.view(), 0, 4, /*final=*/true), ElementsAre(4, 5, 6, 6));
  EXPECT_THAT(frames_of(ended.view(), 0, 4), ElementsAre(0, 0, 0, 0)) << "the next episode's first";
}

INSTANTIATE_TEST_SUITE_P(Env, ChunkFramesTest, ::testing::Bool(), [](const auto& on_demand) {
  return std::string(on_demand.param ? "OnDemand" : "AtEveryStep");
});

TEST(ChunkFramesRulesTest, PicturesGrowAndNothingElse) {
  const auto clock = std::make_shared<ClockFactory>(false);
  const ChunkFrames frames{.offsets = {0, 2}, .stride = 4};
  const EnvSpec spec = with_chunk_frames(clock, frames).value()->spec();
  EXPECT_THAT(spec.observation[0].shape, ElementsAre(1));
  EXPECT_THAT(spec.observation[1].shape, ElementsAre(3, 2, 3));
  EXPECT_THAT(without_chunk_frames(spec, frames).observation[1].shape, ElementsAre(1, 2, 3));
  EXPECT_EQ(with_chunk_frames(clock, {}).value(), clock);
}

TEST(ChunkFramesRulesTest, WhatCannotBeShownIsRefused) {
  const auto clock = std::make_shared<ClockFactory>(false);
  const auto refused = [](const std::shared_ptr<const EnvFactory>& of, const ChunkFrames& frames) {
    const auto made = with_chunk_frames(of, frames);
    return made ? "no error" : made.error().message();
  };
  EXPECT_THAT(refused(clock, {.offsets = {0, 4}, .stride = 4}), HasSubstr("env.frame_offsets is [0, 4]; wanted"));
  EXPECT_THAT(refused(clock, {.offsets = {2, 2}, .stride = 4}), HasSubstr("ascending, from 0 to 3"));
  EXPECT_THAT(refused(factory_of("reach-v1"), {.offsets = {0}, .stride = 4}), HasSubstr("reach-v1 shows no picture"));
}

}  // namespace
}  // namespace troupe::testing
