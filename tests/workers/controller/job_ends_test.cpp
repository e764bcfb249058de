// What the job does when it is asked to stop, and which code it ends with.
#include <gtest/gtest.h>

#include "tests/support/bias_checkpoint.h"
#include "tests/workers/controller/job_controller_fixture.h"

namespace troupe::workers {
namespace {

using namespace std::chrono_literals;

/// Everything has ended as it was told to.
void end_all(JobControllerTest& test) {
  for (const char* actor : {"checkpointer/0", "decoder/0", "decoder/1", "learner/0", "learner/1"})
    test.died(actor, 0, 15);
  test.pass(0ms);
}

/// A job of ten steps: all are trained, the checkpointer has been asked for the last of them, and two signals come.
CheckpointBegin stop_while_the_last_checkpoint_is_written(JobControllerTest& test) {
  test.setup.config.training.steps = 10;
  test.job = std::make_unique<JobController>(test.setup, *test.db, test.effects);
  const std::uint64_t fence = test.begin();
  test.job->handle("learner/0", StepReport{.actor = "learner/0", .fence = fence, .step = 10}, test.now);
  for (const std::int64_t rank : {0, 1}) test.snapshot(fence, rank, "h");
  for (int signal = 0; signal < 2; ++signal) test.job->interrupt({.why = "SIGINT"}, test.now);
  return test.effects.take<CheckpointBegin>().at(0).second;
}

TEST_F(JobControllerTest, AnInterruptFinishesTheStepAndAsksForACheckpoint) {
  begin();
  job->interrupt({.why = "SIGINT"}, now);
  EXPECT_EQ(effects.take<Finish>().size(), 2u);
  EXPECT_EQ(job->state(), JobState::draining);
  job->interrupt({.why = "SIGINT"}, now);
  EXPECT_EQ(effects.take<Stop>().size(), 5u) << "the second one does not wait";
  end_all(*this);
  EXPECT_EQ(job->exit_code(), 130);
}

TEST_F(JobControllerTest, ASchedulerMayStartTheJobAgainAndAPersonMayNot) {
  for (const auto& [interrupts, code] : std::vector<std::pair<std::vector<Interrupt>, int>>{
           {{{.why = "SIGTERM", .is_preemption = true}}, 75},
           {{{.why = "SIGINT"}}, 130},
           {{{.why = "SIGTERM", .is_preemption = true}, {.why = "SIGTERM", .is_preemption = true}}, 130}}) {
    effects = {};
    job = std::make_unique<JobController>(setup, *db, effects);
    job->start(now);
    for (const Interrupt& interrupt : interrupts) job->interrupt(interrupt, now);
    end_all(*this);
    EXPECT_EQ(job->exit_code(), code) << interrupts.size() << " times " << interrupts[0].why;
  }
}

TEST_F(JobControllerTest, AJobThatIsStoppedBeforeItsLastCheckpointIsNotDone) {
  stop_while_the_last_checkpoint_is_written(*this);
  end_all(*this);
  EXPECT_EQ(job->step(), 10);
  EXPECT_EQ(job->checkpoints().committed_step(), 0);
  EXPECT_EQ(job->exit_code(), 130);
}

TEST_F(JobControllerTest, AJobThatIsStoppedAndHasWrittenItsLastCheckpointIsDone) {
  const CheckpointBegin begun = stop_while_the_last_checkpoint_is_written(*this);
  const auto written = write_bias_checkpoint(begun.directory, begun.step, begun.fence, 2);
  job->handle("checkpointer/0",
              CheckpointDone{.step = begun.step, .fence = begun.fence, .manifest_hash = written.manifest_hash}, now);
  end_all(*this);
  EXPECT_EQ(job->checkpoints().committed_step(), 10);
  EXPECT_EQ(job->exit_code(), 0);
}

TEST_F(JobControllerTest, ACheckpointThatCommitsWhileTheJobDrainsLeavesItDraining) {
  const std::uint64_t fence = begin();
  job->interrupt({.why = "SIGINT"}, now);
  for (const std::int64_t rank : {0, 1}) snapshot(fence, rank, "h");
  const auto begun = effects.take<CheckpointBegin>().at(0).second;
  const auto written = write_bias_checkpoint(begun.directory, 10, fence, 2);
  job->handle("checkpointer/0", CheckpointDone{.step = 10, .fence = fence, .manifest_hash = written.manifest_hash},
              now);
  EXPECT_EQ(job->checkpoints().committed_step(), 10);
  EXPECT_EQ(db->committed_step().value(), 10);
  EXPECT_EQ(db->job_state().value(), "DRAINING");
}

}  // namespace
}  // namespace troupe::workers
