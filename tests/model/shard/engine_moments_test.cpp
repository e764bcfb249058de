// Moments that are kept in bf16 (EngineOptions::moment_dtype).
#include <c10/util/BFloat16.h>
#include <gtest/gtest.h>

#include "tests/model/shard/training_harness.h"

namespace troupe::model {
namespace {

TrainingRun with_bf16_moments() {
  TrainingRun run;
  run.options.moment_dtype = at::kBFloat16;
  return run;
}

FullState rounded_moments(FullState state) {
  for (auto& unit : state.values) {
    for (const std::size_t kind : {kM, kV}) {
      for (float& x : unit[kind]) x = static_cast<float>(c10::BFloat16(x));
    }
  }
  return state;
}

TEST(EngineMomentsTest, TheyTakeHalfTheBytesOfShardsAndSnapshots) {
  const auto group = join_thread_group(make_thread_group(2, std::chrono::seconds(5)), 0);
  Engine f32(std::make_shared<ChainNetwork>(), {}), bf16(std::make_shared<ChainNetwork>(), with_bf16_moments().options);
  ASSERT_TRUE(f32.attach(*group));
  ASSERT_TRUE(bf16.attach(*group));
  EXPECT_EQ(bf16.bytes().at("shards"), f32.bytes().at("shards") / 16 * 12);
  EXPECT_EQ(bf16.snapshot_bytes(), f32.snapshot_bytes() / 12 * 8);
}

TEST(EngineMomentsTest, TwoRanksHaveTheBitsOfOneThatAccumulates) {
  TrainingRun one = with_bf16_moments(), two = with_bf16_moments();
  one.micro_batches = 2;
  two.world = 2;
  const auto a = train(one), b = train(two);
  EXPECT_EQ(a.losses, b.losses);
  EXPECT_TRUE(a.state == b.state);
  EXPECT_TRUE(rounded_moments(a.state) == a.state) << "what is saved is bf16";
}

TEST(EngineMomentsTest, AStateOfFourRanksLoadsOnAnyNumberBitForBitAndAResumeIsExact) {
  TrainingRun four = with_bf16_moments();
  four.world = 4;
  const auto saved = train(four).state;
  expect_every_world_loads(with_bf16_moments(), saved);
  TrainingRun more = with_bf16_moments(), straight = with_bf16_moments();
  more.world = straight.world = 4;
  more.first_step = 5;
  more.resume = &saved;
  straight.steps = 10;
  EXPECT_TRUE(train(more).state == train(straight).state);
}

TEST(EngineMomentsTest, AResumeWithTheOtherWidthRoundsOrWidens) {
  const auto f32 = train(TrainingRun{}).state;
  TrainingRun narrow = with_bf16_moments();
  narrow.steps = 0;
  narrow.resume = &f32;
  const auto bf16 = train(narrow).state;
  EXPECT_FALSE(bf16 == f32);
  EXPECT_TRUE(bf16 == rounded_moments(f32));
  TrainingRun widen;
  widen.steps = 0;
  widen.resume = &bf16;
  EXPECT_TRUE(train(widen).state == bf16);
}

TEST(EngineMomentsTest, TheyStandBesideAnAverage) {
  TrainingRun run = with_bf16_moments();
  run.world = 2;
  run.options.ema_decay = 0.5;
  const auto saved = train(run).state;
  run.world = 3;
  run.steps = 0;
  run.resume = &saved;
  EXPECT_TRUE(train(run).state == saved);
}

}  // namespace
}  // namespace troupe::model
