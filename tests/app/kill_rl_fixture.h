#pragma once

#include "tests/app/rl_fixture.h"

namespace troupe::app {

/// Jobs of reinforcement learning whose actors are sent signals.
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
    EXPECT_THAT(job.output(), ::testing::HasSubstr("RUN COMPLETE"));
    EXPECT_THAT(verified(root), ::testing::HasSubstr("lost 0  doubled 0"));
  }
};

}  // namespace troupe::app
