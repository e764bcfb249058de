#include "workers/learner/divergence.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/visible.h"

namespace troupe::workers {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(DivergenceTest, ARowOfDiscardedUpdatesIsToldWithTheNormsBefore) {
  Divergence divergence({.most_in_a_row = 3});
  for (int step = 1; step <= 7; ++step) divergence.applied(step, step * 10.0);
  EXPECT_TRUE(divergence.discarded(8, 1000));
  EXPECT_TRUE(divergence.discarded(9, 1000));
  const auto told = divergence.discarded(10, 1000);
  ASSERT_FALSE(told);
  EXPECT_EQ(told.error().code(), Errc::failed_precondition);
  EXPECT_THAT(told.error().message(),
              AllOf(HasSubstr("3 steps in a row, from step 8 on"), HasSubstr("learning rate 1000"),
                    HasSubstr("before: step 3 30, step 4 40, step 5 50, step 6 60, step 7 70"),
                    HasSubstr("Lower optimizer.lr, to 100 for")));
}

TEST(DivergenceTest, AnUpdateInBetweenBeginsTheCountAnew) {
  Divergence divergence({.most_in_a_row = 2});
  for (int step = 1; step < 20; step += 2) {
    EXPECT_TRUE(divergence.discarded(step, 1));
    divergence.applied(step + 1, 1);
  }
  EXPECT_TRUE(divergence.discarded(21, 1));
  EXPECT_FALSE(divergence.discarded(22, 1));
}

TEST(DivergenceTest, WhatNeverWorkedIsNoMatterOfTheRate) {
  Divergence divergence({.updates = "updates", .most_in_a_row = 1, .suspect = "the rewards"});
  const auto told = divergence.discarded(1, 0.5);
  ASSERT_FALSE(told);
  EXPECT_THAT(told.error().message(),
              AllOf(HasSubstr("1 updates in a row"), HasSubstr("before: none"), HasSubstr("look at the rewards")));
}

TEST(DivergenceTest, ACheckpointBeginsAnew) {
  Divergence divergence({.most_in_a_row = 2});
  divergence.applied(1, 5);
  EXPECT_TRUE(divergence.discarded(2, 1));
  divergence.reset();
  EXPECT_EQ(divergence.story(1), "learning rate 1; gradient norms before: none");
  EXPECT_TRUE(divergence.discarded(2, 1));
}

}  // namespace
}  // namespace troupe::workers
