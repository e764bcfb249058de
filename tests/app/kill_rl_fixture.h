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
};

}  // namespace troupe::app
