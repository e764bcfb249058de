#include "model/optim/lr_schedule.h"

#include <gtest/gtest.h>

namespace troupe::model {
namespace {

const OptimizerConfig kOptimizer{.lr = 2.0, .sophia = {}, .no_decay = {}, .rates = {}};

TEST(LrScheduleTest, WarmUpIsLinearFromZero) {
  const LrSchedulerConfig scheduler{.warmup_ratio = 0.1};
  EXPECT_EQ(lr_at(kOptimizer, scheduler, 0, 100), 0.0);
  EXPECT_DOUBLE_EQ(lr_at(kOptimizer, scheduler, 5, 100), 1.0);
  EXPECT_DOUBLE_EQ(lr_at(kOptimizer, scheduler, 10, 100), 2.0);
}

TEST(LrScheduleTest, TheWarmUpRoundsUpToWholeSteps) {
  const LrSchedulerConfig scheduler{.warmup_ratio = 0.05};
  EXPECT_EQ(lr_at(kOptimizer, scheduler, 0, 10), 0.0);
  EXPECT_DOUBLE_EQ(lr_at(kOptimizer, scheduler, 1, 10), 2.0);
}

TEST(LrScheduleTest, CosineEndsAtTheMinimumAndStaysThere) {
  const LrSchedulerConfig scheduler{.warmup_ratio = 0.0, .min_lr = 0.5};
  EXPECT_DOUBLE_EQ(lr_at(kOptimizer, scheduler, 0, 100), 2.0);
  EXPECT_DOUBLE_EQ(lr_at(kOptimizer, scheduler, 50, 100), 1.25);
  EXPECT_DOUBLE_EQ(lr_at(kOptimizer, scheduler, 100, 100), 0.5);
  EXPECT_DOUBLE_EQ(lr_at(kOptimizer, scheduler, 1000, 100), 0.5);
}

TEST(LrScheduleTest, ConstantKeepsThePeakAfterTheWarmUp) {
  const LrSchedulerConfig scheduler{.name = "constant", .warmup_ratio = 0.5};
  EXPECT_DOUBLE_EQ(lr_at(kOptimizer, scheduler, 10, 100), 0.4);
  EXPECT_DOUBLE_EQ(lr_at(kOptimizer, scheduler, 99, 100), 2.0);
}

TEST(LrScheduleTest, TheConfigsLengthWinsOverTheJobs) {
  const LrSchedulerConfig scheduler{.warmup_ratio = 0.0, .total_steps = 200};
  EXPECT_DOUBLE_EQ(lr_at(kOptimizer, scheduler, 100, 100), 1.0);
}

}  // namespace
}  // namespace troupe::model
