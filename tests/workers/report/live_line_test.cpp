#include "workers/report/live_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/visible.h"

namespace troupe::workers {
namespace {

using ::testing::StartsWith;

LiveLine some() {
  return {.name = "arm",
          .step = 75,
          .total_steps = 300,
          .value = 0.37124,
          .per_second = 35.62,
          .stall_percent = 0.4,
          .restarts = 1,
          .remaining_seconds = 185};
}

TEST(LiveLineTest, EverythingStandsOnAWideTerminal) {
  EXPECT_EQ(live_text(some(), {.width = 120}),
            "[arm] =====>-------------- step 75/300  loss 0.3712  35.6 smp/s  ETA 3m05s  stall 0.4%  restarts 1");
}

TEST(LiveLineTest, WhatWasPredictedStandsBesideTheRate) {
  LiveLine line = some();
  line.predicted_per_second = 37;
  EXPECT_EQ(live_fields(line), "loss 0.3712  35.6 smp/s (predicted 37.0)  ETA 3m05s  stall 0.4%  restarts 1");
}

TEST(LiveLineTest, ItIsNeverLongerThanTheTerminalIsWide) {
  for (std::int64_t width = 1; width < 130; ++width) {
    const std::string text = live_text(some(), {.width = width});
    EXPECT_LE(text.size() + 2, static_cast<std::size_t>(width) + (width < 3 ? 2 : 0)) << "room for ^C: " << text;
  }
  EXPECT_THAT(live_text(some(), {.width = 40}), StartsWith("[arm] "));
  EXPECT_EQ(live_text(some(), {.width = 42}), "[arm] 75/300  loss 0.3712  restarts 1");
}

TEST(LiveLineTest, OnEightyColumnsEveryFieldIsThere) {
  EXPECT_EQ(live_text(some(), {.width = 80}),
            "[arm] ==>------- 75/300  loss 0.3712  35.6/s  ETA 3m05s  stall 0%  restarts 1");
  LiveLine line = some();
  line.name = "rl-arm7-reach-grpo";
  line.step = 18;
  line.total_steps = 4000;
  line.measure = "return";
  line.value = -212.44;
  line.success = 0.61;
  line.rate_noun = "env steps";
  line.per_second = 12'345;
  line.stall_percent = 12.4;
  line.remaining_seconds = 8292;
  EXPECT_EQ(live_text(line, {.width = 80}),
            "[rl-arm7..] 18/4000  return -212.4  12345/s  ETA 2h18m  stall 12%  restarts 1");
  EXPECT_EQ(live_text(line, {.width = 120}),
            "[rl-arm7-reach-grpo] >-------- 18/4000  return -212.4  success 61%  12345 steps/s  ETA 2h18m  stall "
            "12.4%  restarts 1");
}

TEST(CountedTextTest, ACountOfPiecesIsLaidOutAlike) {
  const CountedWork work{.name = "stats", .unit = "episodes", .done = 1500, .of = 6000, .per_second = 100};
  EXPECT_EQ(counted_text(work, {}), "[stats] =====>-------------- 1,500/6,000 episodes  100/s  ETA 45s");
  EXPECT_EQ(counted_text(work, {.width = 40}), "[stats] 1,500/6,000 episodes  100/s");
  EXPECT_EQ(counted_text({.name = "stats", .unit = "tables", .done = 7}, {}), "[stats] >------------------- 7 tables");
  for (std::int64_t width = 1; width < 90; ++width)
    EXPECT_LT(counted_text(work, {.width = width}).size(), static_cast<std::size_t>(width));
}

TEST(LiveLineTest, ReturnAndSuccessStandForLoss) {
  LiveLine line = some();
  line.measure = "return";
  line.value = -212.44;
  line.success = 0.61;
  line.rate_noun = "env steps";
  line.remaining_seconds.reset();
  line.restarts = 0;
  EXPECT_EQ(live_fields(line), "return -212.4  success 61%  35.6 env steps/s  stall 0.4%");
  line.value = std::nan("");
  EXPECT_THAT(live_fields(line), StartsWith("return nan"));
}

TEST(LiveLineTest, WhatSetsThePaceStandsWhereThereIsRoom) {
  LiveLine line = some();
  line.bottleneck = "hand-over";
  EXPECT_EQ(live_fields(line), "loss 0.3712  35.6 smp/s  ETA 3m05s  stall 0.4%  bottleneck: hand-over  restarts 1");
  EXPECT_EQ(live_text(line, {.width = 80}),
            "[arm] ==>------- 75/300  loss 0.3712  35.6/s  ETA 3m05s  stall 0%  restarts 1");
}

TEST(LiveLineTest, TheBarIsAsLongAsItWasAsked) {
  EXPECT_EQ(bar_text(0, 5), ">----");
  EXPECT_EQ(bar_text(0.5, 4), "==>-");
  EXPECT_EQ(bar_text(1, 4), "====");
  EXPECT_EQ(bar_text(std::nan(""), 3), ">--");
  EXPECT_EQ(bar_text(7, 3), "===");
}

}  // namespace
}  // namespace troupe::workers
