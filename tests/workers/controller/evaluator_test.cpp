// What the job makes of its evaluator: evaluations beside training, the last of which it waits for.
#include <gmock/gmock.h>

#include "placement/evaluation.h"
#include "tests/support/bias_checkpoint.h"
#include "tests/support/folder_files.h"
#include "tests/workers/controller/job_controller_fixture.h"

namespace troupe::workers {
namespace {

using namespace std::chrono_literals;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

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
  void evaluator_begins(std::int64_t step) {
    job->handle("evaluator/0", EvalBegun{.actor = "evaluator/0", .fence = fence, .step = step}, now);
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
  evaluator_begins(2);
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
  std::int64_t life = 0;
  for (const std::int64_t step : {2, 4, 6, 8}) {
    evaluator_begins(step);
    for (std::int64_t death = 0; death < kMostEvaluationStarts; ++death) {
      died("evaluator/0", life, 11);
      pass(0ms);
      evaluator_up(++life);
      evaluator_begins(step);
    }
    evaluator_says(step, {{"eval/return", 5}});
  }
  EXPECT_EQ(job->state(), JobState::running);
  EXPECT_EQ(job->actor("evaluator/0")->state, ActorState::up);
}

TEST_F(EvaluatedJobTest, AnEvaluatorThatPlaysTheSameForeverIsGivenUp) {
  evaluator_begins(2);
  std::int64_t lives = 0;
  for (; job->actor("evaluator/0")->state == ActorState::up && lives < 100; ++lives) {
    died("evaluator/0", lives, 11);
    pass(0ms);
    evaluator_up(lives + 1);
    evaluator_begins(2);
  }
  EXPECT_EQ(lives, kMostEvaluationStarts + setup.config.cluster.restart.budget + 1);
  EXPECT_EQ(job->state(), JobState::running);
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

TEST_F(EvaluatedJobTest, SimulatorsAndRolloutWorkersEndWithTrainingAndTheirEndsDoNoHarm) {
  train();
  std::vector<std::string> stopped;
  for (const auto& [to, stop] : effects.take<Stop>()) stopped.push_back(stop.actor);
  EXPECT_THAT(stopped, ElementsAre("env/0", "rollout/0"));
  effects.sent.clear();
  died("env/0", 0, 11);
  died("rollout/0", 0, 15);
  job->handle("checkpointer/0", Fatal{.actor = "checkpointer/0", .text = "the disk is gone"}, now);
  died("checkpointer/0", 0, 6);
  pass(30s);
  EXPECT_TRUE(effects.take<Spawn>().empty());
  EXPECT_THAT(effects.events, Not(Contains(HasSubstr("env/0#0 ended")))) << "it was stopped";
  EXPECT_THAT(effects.events, Contains(HasSubstr("checkpointer/0#0 ended")));
  EXPECT_EQ(job->state(), JobState::running);
  EXPECT_EQ(job->scale({.pool = "env", .target = 2}, now).code, 3);
  evaluator_says(10, {{"eval/return", 5}});
  end_all();
  EXPECT_EQ(job->exit_code(), 0);
}

TEST_F(EvaluatedJobTest, ALearnerIsNotNeededWhenTheLastEvaluationHasBegun) {
  train();
  evaluator_begins(10);
  effects.sent.clear();
  job->handle("learner/0", Fatal{.actor = "learner/0", .text = "no device"}, now);
  died("learner/1", 0, 11);
  job->handle("learner/0", GroupAbort{.actor = "learner/0", .fence = fence, .reason = "a peer is gone"}, now);
  for (int second = 0; second < 30; ++second) pass(1s);
  EXPECT_TRUE(effects.take<Spawn>().empty());
  EXPECT_EQ(job->state(), JobState::running);
  evaluator_says(10, {{"eval/return", 5}});
  EXPECT_EQ(effects.evaluations.back().metrics.at("eval/return"), 5);
  end_all();
  EXPECT_EQ(job->exit_code(), 0);
}

TEST_F(EvaluatedJobTest, ALearnerThatIsNotStartedAgainCostsTheEvaluationThatHasNotBegun) {
  train();
  for (std::int64_t life = 0; job->state() != JobState::stopping && life < 100; ++life) {
    died("learner/1", life, 11);
    pass(0ms);
    up("learner/1", life + 1);
  }
  EXPECT_THAT(effects.events, Contains(HasSubstr("the evaluation of step 10 was not made: learner/1")));
  EXPECT_EQ(effects.evaluations.back().step, 10);
  for (auto& [name, actor] : job->actors().rows()) died(name, actor.incarnation, 15);
  pass(0ms);
  EXPECT_EQ(job->exit_code(), 0);
}

TEST_F(EvaluatedJobTest, ALearnersFatalErrorCostsTheEvaluationThatHasNotBegun) {
  train();
  job->handle("learner/0", Fatal{.actor = "learner/0", .text = "no device"}, now);
  EXPECT_EQ(job->state(), JobState::stopping);
  EXPECT_THAT(effects.events, Contains(HasSubstr("was not made: learner/0: no device")));
  end_all();
  EXPECT_EQ(job->exit_code(), 0);
}

TEST_F(EvaluatedJobTest, ALastCheckpointThatIsDamagedIsTrainedAgain) {
  const auto write = [&](std::int64_t step) {
    for (const std::int64_t rank : {0, 1}) {
      job->handle("learner", SnapshotReady{.actor = "", .rank = rank, .step = step, .fence = fence, .handle = "h"},
                  now);
    }
    const auto begun = effects.take<CheckpointBegin>().at(0).second;
    const auto written = write_bias_checkpoint(begun.directory, step, fence, 2);
    job->handle("checkpointer/0", CheckpointDone{.step = step, .fence = fence, .manifest_hash = written.manifest_hash},
                now);
  };
  write(6);
  train();
  for (const char* actor : {"env/0", "rollout/0", "checkpointer/0"}) died(actor, 0, 15);
  died("learner/1", 0);
  pass(0ms);
  up("learner/1", 1);
  fence = effects.take<GroupPlan>().at(0).second.fence;
  effects.sent.clear();
  flip_byte(setup.run.checkpoints() + "/" + checkpoint_name(10) + "/" + Manifest::rank_file(0, 2), -1);
  job->handle("learner/0",
              GroupAbort{.actor = "learner/0", .fence = fence, .reason = "a byte has changed", .damaged_step = 10},
              now);
  pass(0ms);
  pass(0ms);
  const auto plan = effects.take<GroupPlan>().at(0).second;
  EXPECT_EQ(plan.resume_step, 6);
  fence = plan.fence;
  std::vector<std::string> started;
  for (const auto& [to, spawn] : effects.take<Spawn>()) started.push_back(spawn.actor);
  EXPECT_THAT(started, UnorderedElementsAre("env/0", "rollout/0", "checkpointer/0"));
  for (const std::string& actor : started) up(actor, 1);
  group_up(fence);
  EXPECT_EQ(job->state(), JobState::running);
  pass(61s);
  EXPECT_EQ(job->state(), JobState::recovering) << "ranks that hang are seen again, and eval.timeout_s ends nothing";
  EXPECT_EQ(effects.take<GroupPlan>().size(), 2u);
  job->handle("learner/0", Fatal{.actor = "learner/0", .text = "no device"}, now);
  EXPECT_EQ(job->failure(), "learner/0: no device");
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
