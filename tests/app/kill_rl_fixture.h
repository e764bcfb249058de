#pragma once

#include "tests/app/rl_fixture.h"

namespace troupe::app {

/// Jobs of reinforcement learning whose actors are sent signals.
class KillRlTest : public RlRunTest {
 protected:
  void expect_complete(JobProcess& job, const std::string& root, std::chrono::milliseconds deadline = kRunDeadline) {
    ASSERT_EQ(job.wait(deadline), 0) << job.output();
    EXPECT_THAT(job.output(), ::testing::HasSubstr("RUN COMPLETE"));
    EXPECT_THAT(verified(root), ::testing::HasSubstr("lost 0  doubled 0"));
  }
  /// Kills an actor in an iteration of a job of twelve; it is started again and the job completes.
  void expect_replaced(const std::string& actor, int step, const Words& overrides = {}) {
    auto job = start("runs", Words{"training.steps=12"} + overrides);
    ASSERT_TRUE(job->wait_output(iteration(step))) << job->output();
    job->strike(actor, SIGKILL);
    expect_complete(*job, "runs");
    EXPECT_THAT(job->output(), ::testing::HasSubstr(actor + " killed by signal 9; restart"));
  }
};

}  // namespace troupe::app
