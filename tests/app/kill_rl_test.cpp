// Simulators, rollout workers and learners that are killed, stopped and scaled while a job of reinforcement learning
// runs.
#include "tests/app/kill_rl_fixture.h"

namespace troupe::app {
namespace {

using ::testing::HasSubstr;

TEST_F(KillRlTest, AKilledSimulatorCostsItsOpenItemsOnly) {
  expect_replaced("env/0", 3, {"cluster.component_placement.env=0:0-1"});
}

TEST_F(KillRlTest, AKilledRolloutWorkerIsReplaced) { expect_replaced("rollout/0", 3); }

TEST_F(KillRlTest, AKilledWorkerThatStepsItsEnvironmentsIsReplaced) {
  expect_replaced("rollout/1", 3, {"cluster.isolation.env=inline", "cluster.component_placement.rollout=0:0-1"});
}

TEST_F(KillRlTest, AKilledLearnerGoesBackToItsCheckpoint) { expect_replaced("learner/0", 5); }

TEST_F(KillRlTest, AStoppedSimulatorIsReplaced) {
  auto job = start("runs", {"training.steps=10", "env.step_timeout_s=2", "cluster.component_placement.env=0:0-1"});
  ASSERT_TRUE(job->wait_output(iteration(3))) << job->output();
  const pid_t stopped = job->strike("env/1", SIGSTOP);
  expect_complete(*job, "runs");
  EXPECT_FALSE(JobProcess::is_running(stopped));
}

TEST_F(KillRlTest, PoolsGrowAndShrinkWhileTheJobRuns) {
  auto job = start("runs", {"training.steps=100000"});
  ASSERT_TRUE(job->wait_output(iteration(3))) << job->output();
  ASSERT_TRUE(succeeded(troupe({"scale", "env=4", "rollout=2", "--run-root", dir_ / "runs"})));
  ASSERT_TRUE(job->wait_until([&] { return job->host("env/3").has_value(); }, 30s)) << job->output();
  EXPECT_THAT(job->output(), HasSubstr("env is now 4 by request"));
  ASSERT_TRUE(succeeded(troupe({"scale", "env=2", "--run-root", dir_ / "runs"})));
  ASSERT_TRUE(job->wait_output("env is now 2 by request")) << job->output();
  const auto reached = static_cast<int>(curve("runs", "train/loss").rbegin()->first);
  ASSERT_TRUE(job->wait_output(iteration(reached + 5))) << job->output();
  job->kill(SIGINT);
  EXPECT_EQ(job->wait(kRunDeadline), 130) << job->output();
  EXPECT_THAT(verified("runs"), HasSubstr("lost 0  doubled 0"));
}

TEST_F(KillRlTest, ASimulatorThatHangsInAStepIsReplaced) {
  auto job = start("runs", {"training.steps=8", "env.step_timeout_s=2", "cluster.component_placement.env=0:0-1"},
                   {{"TROUPE_FAULT", "simulator.step@env/0#0:stall:1:40"}});
  expect_complete(*job, "runs");
  EXPECT_THAT(job->output(), HasSubstr("env/0"));
}

TEST_F(KillRlTest, ASimulatorThatCrashesInAStepIsReplaced) {
  auto job = start("runs", {"training.steps=8", "cluster.component_placement.env=0:0-1"},
                   {{"TROUPE_FAULT", "simulator.step@env/1#0:kill:1:40"}});
  expect_complete(*job, "runs");
  EXPECT_THAT(job->output(), HasSubstr("env/1 killed by signal 9; restart"));
}

}  // namespace
}  // namespace troupe::app
