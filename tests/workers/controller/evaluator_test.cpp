// What the job makes of its evaluator: evaluations beside training, the last of which it waits for.
#include <gmock/gmock.h>

#include "tests/support/bias_checkpoint.h"
#include "tests/workers/controller/job_controller_fixture.h"

namespace troupe::workers {
namespace {

using namespace std::chrono_literals;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// A job of ten steps with an evaluator, everything up.
struct EvaluatedJobTest : JobControllerTest {
  void SetUp() override {
    JobControllerTest::SetUp();
    setup.config.job.kind = JobKind::rl;
    setup.config.training.steps = 10;
    setup.config.eval.every = 2;
    setup.config.eval.timeout = Seconds(60);
    setup.config.training.step_timeout = Seconds(2);
    setup.config.cluster.restart.backoff_initial = setup.config.cluster.restart.backoff_max = Seconds(0);
    setup.plan.actors = actors_of({{"learner", 2}, {"env", 1}, {"rollout", 1}, {"evaluator", 1}, {"checkpointer", 1}});
    job = std::make_unique<JobController>(setup, *db, effects);
    job->start(now);
    for (const char* actor : {"checkpointer/0", "env/0", "rollout/0", "learner/0", "learner/1"}) up(actor);
    evaluator_up(0);
    fence = effects.take<GroupPlan>().at(0).second.fence;
    group_up(fence);
    effects.evaluations.clear();
  }
  void evaluator_up(std::int64_t incarnation) {
    job->handle("evaluator/0",
                ActorUp{.actor = "evaluator/0", .incarnation = incarnation, .pid = 1, .weights = {"shm:evaluator"}},
                now);
  }
  void evaluator_says(std::int64_t step, const std::map<std::string, double>& metrics) {
    job->handle("evaluator/0", EvalReport{.actor = "evaluator/0", .fence = fence, .step = step, .metrics = metrics},
                now);
  }
  /// All ten steps are trained and their checkpoint is committed.
  void train() {
    job->handle("learner/0", StepReport{.actor = "learner/0", .fence = fence, .step = 10}, now);
    for (const std::int64_t rank : {0, 1}) snapshot(fence, rank, "h");
    const auto begun = effects.take<CheckpointBegin>().at(0).second;
    const auto written = write_bias_checkpoint(begun.directory, 10, fence, 2);
    job->handle("checkpointer/0", CheckpointDone{.step = 10, .fence = fence, .manifest_hash = written.manifest_hash},
                now);
    for (const char* rank : {"learner/0", "learner/1"})
      job->handle(rank, Finished{.actor = rank, .fence = fence, .step = 10}, now);
  }
  void end_all(std::int64_t of_evaluator = 0) {
    died("evaluator/0", of_evaluator, 15);
    for (const char* actor : {"checkpointer/0", "env/0", "rollout/0", "learner/0", "learner/1"}) died(actor, 0, 15);
    pass(0ms);
  }
  std::uint64_t fence = 0;
};

TEST_F(EvaluatedJobTest, LearnersAreToldWhereTheEvaluatorTakesWeights) {
  effects.sent.clear();
  died("evaluator/0", 0, 11);
  pass(0ms);
  evaluator_up(1);
  const auto peers = effects.take<Peers>();
  ASSERT_EQ(peers.size(), 2u);
  for (const auto& [to, told] : peers) {
    EXPECT_THAT(told.channels, Contains("shm:evaluator"));
    EXPECT_THAT(told.evaluators, ElementsAre("shm:evaluator"));
  }
}

TEST_F(EvaluatedJobTest, AnEvaluationIsRecordedAtItsStepHoweverFarTrainingIs) {
  job->handle("learner/0", StepReport{.actor = "learner/0", .fence = fence, .step = 9}, now);
  evaluator_says(2, {});
  EXPECT_TRUE(effects.evaluations.empty()) << "it has only begun";
  evaluator_says(2, {{"eval/return", 5}});
  evaluator_says(8, {{"eval/return", 6}});
  ASSERT_EQ(effects.evaluations.size(), 2u);
  EXPECT_EQ(effects.evaluations[0].step, 2);
  EXPECT_EQ(effects.evaluations[0].metrics.at("eval/skipped"), 0);
  EXPECT_EQ(effects.evaluations[1].metrics.at("eval/skipped"), 2) << "4 and 6";
}

TEST_F(EvaluatedJobTest, TheLastEvaluationIsAwaited) {
  train();
  pass(50s);
  EXPECT_EQ(job->state(), JobState::running);
  evaluator_says(10, {{"eval/return", 5}});
  EXPECT_EQ(job->state(), JobState::stopping);
  end_all();
  EXPECT_EQ(job->exit_code(), 0);
}

TEST_F(EvaluatedJobTest, WhereTheLastEvaluationCameFirstNothingIsAwaited) {
  evaluator_says(10, {{"eval/return", 5}});
  train();
  EXPECT_EQ(job->state(), JobState::stopping);
}

TEST_F(EvaluatedJobTest, AJobIsDoneWithoutItsLastEvaluationBehindTheDeadline) {
  train();
  pass(61s);
  EXPECT_EQ(job->state(), JobState::stopping);
  EXPECT_THAT(effects.events, Contains(HasSubstr("eval.timeout_s")));
  ASSERT_EQ(effects.evaluations.size(), 1u);
  EXPECT_EQ(effects.evaluations[0].step, 10);
  EXPECT_EQ(effects.evaluations[0].metrics.at("eval/lost"), static_cast<double>(setup.config.eval.episodes));
  end_all();
  EXPECT_EQ(job->exit_code(), 0);
}

TEST_F(EvaluatedJobTest, WhileTheLastEvaluationIsAwaitedTheRanksAreNotTakenForDead) {
  train();
  for (int second = 0; second < 59; ++second) pass(1s);
  EXPECT_EQ(job->state(), JobState::running);
  EXPECT_TRUE(effects.take<GroupPlan>().empty()) << "59 s are 29 step timeouts";
}

TEST_F(EvaluatedJobTest, AnEvaluatorThatDiesIsStartedAgainAsOftenAsItPlays) {
  for (std::int64_t life = 0; life < 40; ++life) {
    died("evaluator/0", life, 11);
    pass(0ms);
    evaluator_up(life + 1);
    evaluator_says(2, {});
  }
  EXPECT_EQ(job->state(), JobState::running);
  EXPECT_EQ(job->actor("evaluator/0")->state, ActorState::up);
}

TEST_F(EvaluatedJobTest, AnEvaluatorThatNeverPlaysIsGivenUpAndTheJobIsNot) {
  for (std::int64_t life = 0; life <= setup.config.cluster.restart.budget; ++life) {
    died("evaluator/0", life, 11);
    pass(0ms);
  }
  EXPECT_EQ(job->actor("evaluator/0")->state, ActorState::gone);
  EXPECT_THAT(effects.events, Contains(HasSubstr("training goes on without evaluations")));
  EXPECT_EQ(job->state(), JobState::running);
  train();
  pass(0ms);
  EXPECT_EQ(job->state(), JobState::stopping);
  EXPECT_THAT(effects.events, Contains(HasSubstr("the evaluator is gone")));
  EXPECT_EQ(effects.evaluations.back().metrics.at("eval/num_trajectories"), 0);
}

TEST_F(EvaluatedJobTest, AnInterruptEndsTheWaitAndTheJobMayGoOn) {
  train();
  job->interrupt({.why = "SIGTERM", .is_preemption = true}, now);
  EXPECT_EQ(job->state(), JobState::stopping);
  end_all();
  EXPECT_EQ(job->exit_code(), 75);
}

TEST_F(EvaluatedJobTest, EvaluationsOfWeightsThatWereRolledBackDoNotCount) {
  died("learner/1", 0);
  pass(0ms);
  up("learner/1", 1);
  evaluator_says(2, {{"eval/return", 5}});
  EXPECT_TRUE(effects.evaluations.empty()) << "the group began again at step 0";
  fence = effects.take<GroupPlan>().at(0).second.fence;
  evaluator_says(2, {{"eval/return", 5}});
  EXPECT_EQ(effects.evaluations.size(), 1u);
}

}  // namespace
}  // namespace troupe::workers
