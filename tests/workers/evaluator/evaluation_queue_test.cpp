#include "workers/evaluator/evaluation_queue.h"

#include <gtest/gtest.h>

#include "tests/support/visible.h"

namespace troupe::workers {
namespace {

constexpr std::int64_t kLast = 50;

PublishedWeightsPtr version(std::int64_t number, std::uint64_t fence = 1) {
  auto weights = std::make_shared<PublishedWeights>();
  weights->fence = fence;
  weights->version = number;
  return weights;
}

struct EvaluationQueueTest : ::testing::Test {
  EvaluationQueue queue{kLast};
  std::int64_t taken() {
    const auto weights = queue.take();
    return weights ? weights->version : -1;
  }
};

TEST_F(EvaluationQueueTest, WhatArrivesWhileAnotherIsPlayedIsLeftOut) {
  EXPECT_TRUE(queue.offer(version(10)));
  EXPECT_EQ(taken(), 10);
  EXPECT_FALSE(queue.offer(version(20)));
  EXPECT_FALSE(queue.offer(version(30)));
  EXPECT_EQ(taken(), -1);
  queue.ended();
  EXPECT_EQ(taken(), -1) << "those are not made up for";
  EXPECT_TRUE(queue.offer(version(40)));
  EXPECT_EQ(taken(), 40);
}

TEST_F(EvaluationQueueTest, TheLastWaits) {
  queue.offer(version(40));
  EXPECT_EQ(taken(), 40);
  EXPECT_TRUE(queue.offer(version(kLast)));
  EXPECT_EQ(taken(), -1);
  queue.ended();
  EXPECT_EQ(taken(), kLast);
}

TEST_F(EvaluationQueueTest, AVersionThatIsSentAgainIsNotEvaluatedAgain) {
  queue.was_made(1, 20);
  EXPECT_TRUE(queue.offer(version(20)));
  EXPECT_EQ(taken(), -1);
  EXPECT_TRUE(queue.offer(version(10, 2)));
  EXPECT_EQ(taken(), 10) << "the group went back";
}

TEST_F(EvaluationQueueTest, WhatAnEarlierProcessBeganGoesFirst) {
  queue.goes_on(1, 20);
  EXPECT_TRUE(queue.offer(version(20)));
  EXPECT_FALSE(queue.offer(version(30)));
  EXPECT_EQ(taken(), -1);
  queue.ended();
  EXPECT_EQ(taken(), -1);
}

TEST_F(EvaluationQueueTest, AGroupThatWentBackVoidsWhatIsPlayed) {
  queue.offer(version(30));
  EXPECT_EQ(taken(), 30);
  EXPECT_FALSE(queue.offer(version(40, 2))) << "that one may have gone on from step 30 or later";
  EXPECT_FALSE(queue.is_void());
  EXPECT_TRUE(queue.offer(version(20, 2)));
  EXPECT_TRUE(queue.is_void());
  EXPECT_EQ(taken(), -1);
  queue.ended();
  EXPECT_FALSE(queue.is_void());
  EXPECT_EQ(taken(), 20);
  EXPECT_FALSE(queue.offer(version(30, 2)));
  EXPECT_FALSE(queue.is_void()) << "the same group's";
}

TEST_F(EvaluationQueueTest, TheLastOfAGroupThatFormedAgainReplacesTheOneThatWaits) {
  queue.offer(version(40));
  EXPECT_EQ(taken(), 40);
  queue.offer(version(kLast, 1));
  queue.offer(version(kLast, 2));
  queue.ended();
  EXPECT_EQ(queue.take()->fence, 2u);
}

}  // namespace
}  // namespace troupe::workers
