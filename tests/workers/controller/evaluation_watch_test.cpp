#include "workers/controller/evaluation_watch.h"

#include <gtest/gtest.h>

#include "placement/evaluation.h"
#include "tests/support/visible.h"
#include "workers/controller/effects.h"

namespace troupe::workers {
namespace {

using namespace std::chrono_literals;

struct EvaluationWatchTest : ::testing::Test {
  EvaluationWatchTest() {
    job.training.steps = 100;
    job.eval.every = 10;
    job.eval.episodes = 8;
    job.eval.timeout = Seconds(60);
    watch.group_formed(1, 0);
  }
  static EvalReport report(std::uint64_t fence, std::int64_t step) {
    return {.actor = "evaluator/0", .fence = fence, .step = step, .metrics = {{"eval/return", 1}}};
  }
  static EvalBegun begun(std::uint64_t fence, std::int64_t step) {
    return {.actor = "evaluator/0", .fence = fence, .step = step};
  }
  double skipped_before(std::int64_t step, std::uint64_t fence = 1) {
    return watch.ended(report(fence, step)).metrics.at(kSkippedEvaluations);
  }

  JobConfig job;
  EvaluationWatch watch{job};
};

TEST_F(EvaluationWatchTest, CountsWhatWasDueAndNotMade) {
  EXPECT_EQ(skipped_before(10), 0);
  EXPECT_EQ(skipped_before(20), 0);
  EXPECT_EQ(skipped_before(60), 3);
  EXPECT_EQ(skipped_before(100), 3) << "70, 80, 90";
}

TEST_F(EvaluationWatchTest, TheLastIsDueWhateverEveryIs) {
  job.eval.every = 30;
  EXPECT_EQ(skipped_before(60), 1);
  EXPECT_EQ(skipped_before(100), 1);
  job.eval.every = 0;
  EvaluationWatch only_last(job);
  EXPECT_EQ(only_last.ended(report(1, 100)).metrics.at(kSkippedEvaluations), 0);
}

TEST_F(EvaluationWatchTest, WhatAGroupWentBackBehindDoesNotCount) {
  watch.group_formed(2, 25);
  EXPECT_TRUE(watch.counts(1, 20));
  EXPECT_FALSE(watch.counts(1, 30)) << "step 30 is trained again";
  EXPECT_TRUE(watch.counts(2, 30));
  watch.group_formed(3, 40);
  EXPECT_FALSE(watch.counts(1, 30)) << "the group in between began below it";
  EXPECT_TRUE(watch.counts(2, 40));
  EXPECT_FALSE(watch.counts(2, 50));
}

TEST_F(EvaluationWatchTest, StepsThatAreTrainedAgainAreDueAgain) {
  EXPECT_EQ(skipped_before(40), 3);
  watch.group_formed(2, 20);
  EXPECT_EQ(skipped_before(40, 2), 1);
}

TEST_F(EvaluationWatchTest, ARunThatGoesOnOwesWhatFollowsAlone) {
  EvaluationWatch resumed(job);
  resumed.resume_from(50);
  resumed.group_formed(1, 50);
  EXPECT_EQ(resumed.ended(report(1, 70)).metrics.at(kSkippedEvaluations), 1) << "60";
}

TEST_F(EvaluationWatchTest, TheLastIsOwedUntilItCounts) {
  EXPECT_TRUE(watch.owes_last());
  skipped_before(90);
  EXPECT_TRUE(watch.owes_last());
  skipped_before(100);
  EXPECT_FALSE(watch.owes_last());
  watch.group_formed(2, 100);
  EXPECT_FALSE(watch.owes_last());
  watch.group_formed(3, 90);
  EXPECT_TRUE(watch.owes_last());
}

TEST_F(EvaluationWatchTest, TheLastIsWaitedForUntilItsDeadline) {
  const EvaluationWatch::TimePoint begin{1h};
  EXPECT_FALSE(watch.is_overdue(begin));
  watch.await(begin);
  watch.await(begin + 50s);
  EXPECT_FALSE(watch.is_overdue(begin + 60s));
  EXPECT_TRUE(watch.is_overdue(begin + 61s));
  const EvalReport lost = watch.give_up_last(1);
  EXPECT_EQ(lost.step, 100);
  EXPECT_EQ(lost.metrics.at("eval/lost"), 8);
  EXPECT_EQ(lost.metrics.at("eval/num_trajectories"), 0);
  EXPECT_FALSE(watch.owes_last());
}

TEST_F(EvaluationWatchTest, ALastStepThatIsTrainedAgainIsNotWaitedForYet) {
  const EvaluationWatch::TimePoint begin{1h};
  EXPECT_TRUE(watch.needs_weights());
  watch.begun(begun(1, 100));
  EXPECT_FALSE(watch.needs_weights());
  watch.await(begin);
  watch.group_formed(2, 100);
  EXPECT_TRUE(watch.is_awaited());
  EXPECT_FALSE(watch.needs_weights());
  watch.group_formed(3, 90);
  EXPECT_FALSE(watch.is_awaited());
  EXPECT_FALSE(watch.is_overdue(begin + 1h));
  EXPECT_TRUE(watch.needs_weights());
  watch.begun(begun(2, 100));
  EXPECT_TRUE(watch.needs_weights()) << "those were other weights";
  watch.await(begin + 1h);
  EXPECT_FALSE(watch.is_overdue(begin + 1h + 60s)) << "the wait begins anew";
}

TEST_F(EvaluationWatchTest, OfAnEvaluationSoManyDeathsAreForgiven) {
  EXPECT_FALSE(watch.begun(begun(1, 10))) << "it has cost nobody anything";
  for (std::int64_t death = 1; death <= kMostEvaluationStarts; ++death) EXPECT_TRUE(watch.begun(begun(1, 10)));
  EXPECT_FALSE(watch.begun(begun(1, 10)));
  EXPECT_FALSE(watch.begun(begun(2, 10)));
  EXPECT_TRUE(watch.begun(begun(2, 10)));
}

}  // namespace
}  // namespace troupe::workers
