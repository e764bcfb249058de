// Simulators, rollout workers and learners that are killed, stopped and scaled while a job of reinforcement learning
// runs.
#include <random>

#include "tests/app/rl_fixture.h"

namespace troupe::app {
namespace {

using ::testing::HasSubstr;

class KillRlTest : public RlRunTest {
 protected:
  static pid_t strike(JobProcess& job, const std::string& actor, int signal) {
    EXPECT_TRUE(job.wait_until([&] { return job.host(actor).has_value(); }, 30s)) << actor << "\n" << job.output();
    const pid_t pid = job.host(actor).value_or(0);
    if (pid != 0) ::kill(pid, signal);
    return pid;
  }
  void expect_complete(JobProcess& job, const std::string& root, std::chrono::milliseconds deadline = kRunDeadline) {
    ASSERT_EQ(job.wait(deadline), 0) << job.output();
    EXPECT_THAT(job.output(), HasSubstr("RUN COMPLETE"));
    EXPECT_THAT(verified(root), HasSubstr("lost 0  doubled 0"));
  }
};

TEST_F(KillRlTest, AKilledSimulatorCostsItsOpenItemsOnly) {
  auto job = start("runs", {"training.steps=12", "cluster.component_placement.env=0:0-1"});
  ASSERT_TRUE(job->wait_output(iteration(3))) << job->output();
  strike(*job, "env/0", SIGKILL);
  expect_complete(*job, "runs");
  EXPECT_THAT(job->output(), HasSubstr("env/0 killed by signal 9; restart"));
}

TEST_F(KillRlTest, AKilledRolloutWorkerIsReplaced) {
  auto job = start("runs", {"training.steps=12"});
  ASSERT_TRUE(job->wait_output(iteration(3))) << job->output();
  strike(*job, "rollout/0", SIGKILL);
  expect_complete(*job, "runs");
  EXPECT_THAT(job->output(), HasSubstr("rollout/0 killed by signal 9; restart"));
}

TEST_F(KillRlTest, AKilledLearnerGoesBackToItsCheckpoint) {
  auto job = start("runs", {"training.steps=12"});
  ASSERT_TRUE(job->wait_output(iteration(5))) << job->output();
  strike(*job, "learner/0", SIGKILL);
  expect_complete(*job, "runs");
  EXPECT_THAT(job->output(), HasSubstr("learner/0 killed by signal 9; restart"));
}

TEST_F(KillRlTest, AStoppedSimulatorIsReplaced) {
  auto job = start("runs", {"training.steps=10", "env.step_timeout_s=2", "cluster.component_placement.env=0:0-1"});
  ASSERT_TRUE(job->wait_output(iteration(3))) << job->output();
  const pid_t stopped = strike(*job, "env/1", SIGSTOP);
  expect_complete(*job, "runs");
  EXPECT_FALSE(JobProcess::is_running(stopped));
}

TEST_F(KillRlTest, PoolsGrowAndShrinkWhileTheJobRuns) {
  auto job = start("runs", {"training.steps=40"});
  ASSERT_TRUE(job->wait_output(iteration(3))) << job->output();
  const ProgramEnd more = troupe({"scale", "env=4", "rollout=2", "--run-root", dir_ / "runs"});
  ASSERT_TRUE(succeeded(more));
  ASSERT_TRUE(job->wait_until([&] { return job->host("env/3").has_value(); }, 30s)) << job->output();
  ASSERT_TRUE(succeeded(troupe({"scale", "env=2", "--run-root", dir_ / "runs"})));
  expect_complete(*job, "runs");
  EXPECT_THAT(job->output(), HasSubstr("env is now 4 by request"));
  EXPECT_THAT(job->output(), HasSubstr("env is now 2 by request"));
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

// The whole recipe: it must still learn what it learns undisturbed (475, in each of the seeds 0 to 9).
TEST_F(KillRlTest, TwentyKillsAndThreePoolSizesTakeNothingFromWhatIsLearnt) {
  const Words words = {
      "run", "rl_cartpole_ppo", "job.run_root=" + (dir_ / "runs"), "metrics.every=1",
      "cluster.restart={budget: 20, component_budget: 40, backoff_initial_s: 0.1, backoff_max_s: 0.2}"};
  JobProcess job(words, dir_ / "runs.log");
  const auto scale = [&](const std::string& pools, const std::string& newest) {
    ASSERT_TRUE(succeeded(troupe({"scale", pools, "--run-root", dir_ / "runs"})));
    ASSERT_TRUE(job.wait_until([&] { return job.host(newest).has_value(); }, 30s)) << job.output();
  };
  std::mt19937 random(7);
  for (int kill = 0; kill < 20; ++kill) {
    ASSERT_TRUE(job.wait_output(iteration(2 + 3 * kill))) << job.output();
    if (kill == 2) scale("env=8", "env/7");
    if (kill == 14) scale("env=2", "env/1");
    if (HasFatalFailure()) return;
    const int envs = kill < 2    ? 1
                     : kill < 14 ? 8
                                 : 2,
              actor = static_cast<int>(random() % static_cast<unsigned>(envs + 1));
    strike(job, actor == envs ? std::string("rollout/0") : "env/" + std::to_string(actor), SIGKILL);
  }
  ASSERT_NO_FATAL_FAILURE(expect_complete(job, "runs", 2 * kRunDeadline));
  EXPECT_GE(curve("runs", "eval/return").rbegin()->second, 475);
}

}  // namespace
}  // namespace troupe::app
