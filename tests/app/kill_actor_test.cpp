// Host processes that are killed or stopped in the middle of a run: the run completes, and trains what it would have
// trained.
#include "tests/app/kill_fixture.h"
#include "tests/support/control_group.h"

namespace troupe::app {
namespace {

class KillActorTest : public KillTest {
 protected:
  static void freeze(const JobProcess& job, const std::string& actor, const ControlGroup& group) {
    const auto pid = job.host(actor);
    ASSERT_TRUE(pid) << actor << " has no process\n" << job.output();
    group.add(*pid);
    group.freeze();
  }
};

TEST_F(KillActorTest, KillsOfEveryRoleLeaveTheSameWeights) {
  auto job = run("killed");
  const std::vector<std::pair<int, std::string>> kills = {{3, "decoder/0"},  {7, "learner/1"},  {12, "checkpointer/0"},
                                                          {18, "learner/0"}, {22, "decoder/1"}, {27, "learner/1"}};
  ASSERT_NO_FATAL_FAILURE(expect_survived(*job, "killed", kills));
  EXPECT_EQ(weights("killed"), undisturbed_weights());
}

TEST_F(KillActorTest, KillsDuringTheStartAreSurvived) {
  auto job = run("early", {"training.steps=10"});
  for (const char* actor : {"learner/0", "decoder/1", "checkpointer/0", "learner/1"}) job->strike(actor, SIGKILL);
  expect_complete(*job, "early");
}

TEST_F(KillActorTest, AllHostsKilledAtOnceComeBack) {
  auto job = run("all");
  ASSERT_TRUE(job->wait_output(step_line(12))) << job->output();
  for (const auto& [instance, pid] : job->hosts()) ::kill(pid, SIGKILL);
  expect_complete(*job, "all");
  EXPECT_EQ(weights("all"), undisturbed_weights());
}

TEST_F(KillActorTest, HostsObeyTheirNodeAlone) {
  auto job = run("told", {"training.steps=20"});
  ASSERT_TRUE(job->wait_output(step_line(5))) << job->output();
  const auto before = job->hosts();
  for (const auto& [instance, pid] : before) ::kill(pid, SIGTERM);
  ASSERT_TRUE(job->wait_output(step_line(15))) << job->output();
  EXPECT_EQ(job->hosts(), before);
  expect_complete(*job, "told");
  EXPECT_THAT(job->output(), ::testing::HasSubstr("restarts 0"));
}

TEST_F(KillActorTest, AStoppedDecoderIsReplaced) {
  auto job = run("stopped", {"data.decode_deadline_s=2"});
  ASSERT_TRUE(job->wait_output(step_line(5))) << job->output();
  const pid_t stopped = job->strike("decoder/0", SIGSTOP);
  expect_complete(*job, "stopped");
  EXPECT_THAT(job->output(), ::testing::HasSubstr("data.decode_deadline_s"));
  EXPECT_FALSE(JobProcess::is_running(stopped));
}

TEST_F(KillActorTest, ADecoderThatNothingEndsIsLeftOut) {
  const ControlGroup group("freezer");
  if (!group.missing().empty()) GTEST_SKIP() << group.missing();
  auto job = run("frozen", {"data.decode_deadline_s=2"});
  ASSERT_TRUE(job->wait_output(step_line(5))) << job->output();
  ASSERT_NO_FATAL_FAILURE(freeze(*job, "decoder/0", group));
  expect_complete(*job, "frozen");
  EXPECT_THAT(job->output(), ::testing::HasSubstr("decoder/0#0 survives SIGKILL"));
  EXPECT_THAT(job->output(), ::testing::HasSubstr("it is not started again"));
}

TEST_F(KillActorTest, ARankThatNothingEndsEndsTheJobWithItsCheckpoints) {
  const ControlGroup group("freezer");
  if (!group.missing().empty()) GTEST_SKIP() << group.missing();
  auto job = run("frozen", {"training.step_timeout_s=2", "cluster.start_timeout_s=5"});
  ASSERT_TRUE(job->wait_output(step_line(11))) << job->output();  // which means that step 5 is on disk
  ASSERT_NO_FATAL_FAILURE(freeze(*job, "learner/1", group));
  EXPECT_EQ(job->wait(kRunDeadline), 4) << job->output();
  EXPECT_THAT(job->output(), ::testing::HasSubstr("learner/1#0 survives SIGKILL"));
  EXPECT_TRUE(std::filesystem::exists(run_directory("frozen") + "/checkpoints/step_000005/manifest.json"));
}

TEST_F(KillActorTest, AStoppedLearnerIsKilledAndItsPeerIsNot) {
  auto job = run("stopped", {"training.step_timeout_s=5", "cluster.start_timeout_s=5"});
  ASSERT_TRUE(job->wait_output(step_line(7))) << job->output();
  const auto peer = job->host("learner/0");
  job->strike("learner/1", SIGSTOP);
  ASSERT_TRUE(job->wait_output("waited for learner/1 in vain")) << job->output();
  EXPECT_EQ(job->host("learner/0"), peer);
  expect_complete(*job, "stopped");
  EXPECT_EQ(job->output().find("learner/0 killed"), std::string::npos) << job->output();
}

TEST_F(KillActorTest, LearnersThatAreAllStoppedAreReplaced) {
  auto job = run("stopped", {"training.step_timeout_s=2", "cluster.start_timeout_s=5"});
  ASSERT_TRUE(job->wait_output(step_line(7))) << job->output();
  for (const char* actor : {"learner/0", "learner/1"}) job->strike(actor, SIGSTOP);
  expect_complete(*job, "stopped");
}

TEST_F(KillActorTest, AStoppedCheckpointerIsKilledAtItsDeadline) {
  auto job = run("stopped", {"checkpoint.timeout_s=2"});
  ASSERT_TRUE(job->wait_output(step_line(6))) << job->output();
  job->strike("checkpointer/0", SIGSTOP);
  expect_complete(*job, "stopped");
  EXPECT_THAT(job->output(), ::testing::HasSubstr("checkpoint.timeout_s"));
}

TEST_F(KillActorTest, AnEmptyRestartBudgetEndsTheRunAndKeepsItsCheckpoints) {
  auto job = run("budget", {"cluster.restart.budget=1"});
  ASSERT_TRUE(job->wait_output(step_line(11))) << job->output();  // which means that step 5 is on disk
  job->strike("decoder/1", SIGKILL);
  ASSERT_TRUE(job->wait_output("decoder/1 killed by signal 9; restart 1")) << job->output();
  job->strike("decoder/1", SIGKILL);
  EXPECT_EQ(job->wait(kRunDeadline), 4) << job->output();
  EXPECT_THAT(job->output(), ::testing::HasSubstr("decoder/1 killed by signal 9 and is not started again"));
  EXPECT_THAT(job->output(), ::testing::HasSubstr("cluster.restart.budget"));
  EXPECT_TRUE(std::filesystem::exists(run_directory("budget") + "/checkpoints/step_000005/manifest.json"));
  auto resumed = run("budget", {}, {"--resume", "auto"});
  expect_complete(*resumed, "budget");
}

}  // namespace
}  // namespace troupe::app
