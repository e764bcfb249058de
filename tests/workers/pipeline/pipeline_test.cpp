#include "workers/pipeline/pipeline.h"

#include <gmock/gmock.h>

#include "tests/support/lottery_env.h"
#include "tests/workers/inference/agent/untrained_agent.h"

namespace troupe::workers {
namespace {

TEST(PipelineTest, AnEnvironmentWithoutATimeLimitIsRefusedWhereEvaluationsPlayIt) {
  const JobConfig job = small_rl_job("lottery-test-v1");
  EnvSpec spec = LotteryEnv<true>::make_spec();
  EXPECT_TRUE(open_pipeline(job, spec));
  spec.max_steps = 0;
  const auto endless = open_pipeline(job, spec);
  ASSERT_FALSE(endless);
  EXPECT_EQ(endless.error().code(), Errc::invalid_argument);
  EXPECT_THAT(endless.error().message(), ::testing::StartsWith("env.max_episode_steps: "));
}

}  // namespace
}  // namespace troupe::workers
