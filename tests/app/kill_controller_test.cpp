// The process of `troupe run` is killed, doubled or told to stop.
#include "tests/app/kill_fixture.h"

namespace troupe::app {
namespace {

using KillControllerTest = KillTest;

TEST_F(KillControllerTest, AKilledRunLeavesNobodyBehindAndResumesToTheSameWeights) {
  auto job = run("killed");
  ASSERT_TRUE(job->wait_output(step_line(13))) << job->output();
  const auto hosts = job->hosts();
  EXPECT_EQ(hosts.size(), 5u);
  job->kill(SIGKILL);
  ASSERT_EQ(job->wait(10s), 128 + SIGKILL);
  auto resumed = run("killed", {}, {"--resume", "auto"});
  const auto all_gone = [&] {
    return std::none_of(hosts.begin(), hosts.end(),
                        [](const auto& host) { return JobProcess::is_running(host.second); });
  };
  EXPECT_TRUE(resumed->wait_until(all_gone, 15s));
  expect_complete(*resumed, "killed");
  EXPECT_TRUE(resumed->wait_output("resuming at step (5|10) ")) << resumed->output();  // 10 may have been under way
  EXPECT_EQ(weights("killed"), undisturbed_weights());
}

TEST_F(KillControllerTest, AKillBeforeTheFirstCheckpointStartsOver) {
  auto job = run("killed", {"training.steps=10"});
  ASSERT_TRUE(job->wait_output(step_line(2))) << job->output();
  job->kill(SIGKILL);
  ASSERT_EQ(job->wait(10s), 128 + SIGKILL);
  auto resumed = run("killed", {"training.steps=10"}, {"--resume", "auto"});
  expect_complete(*resumed, "killed");
}

TEST_F(KillControllerTest, ASecondControllerOfTheSameRunIsRefused) {
  // Long enough that the first still runs when the second has started, however slow that is; ended by a signal.
  auto job = run("twice", {"training.steps=100000", "checkpoint.interval=50", "metrics.every=1000"});
  ASSERT_TRUE(job->wait_output("step +1/")) << job->output();
  auto second = run("twice", {"training.steps=100000"}, {"--resume", "auto"});
  EXPECT_EQ(second->wait(30s), 2) << second->output();
  EXPECT_NE(second->output().find("is running (pid"), std::string::npos) << second->output();
  job->kill(SIGTERM);
  EXPECT_EQ(job->wait(60s), 75) << job->output();
}

TEST_F(KillControllerTest, OneSignalWritesACheckpointAndSaysWhoseItWas) {
  const std::vector<std::pair<int, int>> codes{{SIGINT, 130}, {SIGHUP, 130}, {SIGTERM, 75}, {SIGUSR1, 75}};
  for (const auto& [signal, code] : codes) {
    auto job = run("once", {}, {"--resume", "auto"});
    ASSERT_TRUE(job->wait_output("step +[0-9]+/")) << job->output();
    const auto hosts = job->hosts();
    job->kill(signal);
    EXPECT_EQ(job->wait(30s), code) << job->output();
    EXPECT_THAT(job->output(), ::testing::HasSubstr("finishing the current step and writing a checkpoint"));
    for (const auto& [instance, pid] : hosts) EXPECT_FALSE(JobProcess::is_running(pid)) << instance;
  }
  auto resumed = run("once", {}, {"--resume", "auto"});
  expect_complete(*resumed, "once");
  EXPECT_EQ(weights("once"), undisturbed_weights());
}

TEST_F(KillControllerTest, ASecondInterruptStopsAtOnceAlsoWithAStoppedLearner) {
  auto job = run("again");
  ASSERT_TRUE(job->wait_output(step_line(7))) << job->output();
  const pid_t stopped = job->strike("learner/0", SIGSTOP);
  job->kill(SIGINT);
  ASSERT_TRUE(job->wait_output("finishing the current step")) << job->output();
  job->kill(SIGINT);
  EXPECT_EQ(job->wait(60s), 130) << job->output();
  EXPECT_FALSE(JobProcess::is_running(stopped));
  expect_sound("again");
}

}  // namespace
}  // namespace troupe::app
