#include "workers/pipeline/pipeline.h"

#include <gmock/gmock.h>

#include "env/env_spec_json.h"
#include "env/registry/registry.h"
#include "tests/support/lottery_env.h"
#include "tests/workers/inference/agent/untrained_agent.h"
#include "tests/workers/inference/dreamzero/fine_tuned.h"

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

TEST(PipelineTest, DreamzerosCheckpointsHoldWhatDescribesIt) {
  FineTuned files;
  const JobConfig job = FineTuned::rl_job(files.write(FineTuned::sft_job()));
  const auto pipeline = open_pipeline(job, env_spec_of(job.env).value());
  ASSERT_TRUE(pipeline) << pipeline.error().message();
  std::map<std::string, std::string> attached;
  for (const CheckpointAttachment& file : (*pipeline)->attachments()) attached[file.name] = file.bytes;
  EXPECT_EQ(attached.size(), 2u);
  EXPECT_EQ(attached["metadata.json"], FineTuned::metadata().bytes);
  EXPECT_EQ(attached.count(std::string(kEnvSpecFile)), 1u);
  // the test's checkpoint says nothing of encoders
  EXPECT_THAT((*pipeline)->encoder_hash().error().message(), ::testing::HasSubstr("model.init: the frozen networks"));
}

}  // namespace
}  // namespace troupe::workers
