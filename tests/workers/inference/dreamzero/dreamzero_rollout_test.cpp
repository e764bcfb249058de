// DreamZero's windows over items of a rollout: what the environment shows between calls, and what the learner finds.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "model/loss/rl_keys.h"
#include "model/policy/flow_step.h"
#include "tests/support/tensor_checks.h"
#include "tests/workers/inference/dreamzero/fine_tuned.h"
#include "tests/workers/learner/rl/one_thread_rollout.h"

namespace troupe::workers {
namespace {

/// Two environments and three policy calls an item: a whole window of two and one call of the next.
JobConfig window_job(FineTuned& files) {
  const std::string checkpoint =
      files.write(FineTuned::load("recipes/sft_arm7_reach_tiny.yaml", {"data.window.chunks=2"}));
  return FineTuned::rl_job(
      checkpoint, {"data.window.chunks=2", "env.frame_offsets=[0, 4]", "env.num_envs=2", "env.blocks=1",
                   "env.group_size=2", "env.max_episode_steps=24", "env.options.image_size=64", "rollout.steps=24",
                   "training.global_batch_size=6", "training.micro_batch_size=6"});
}

TEST(DreamzeroRolloutTest, LogProbabilitiesComeOutOfAnItemOfWindowsAgain) {
  FineTuned files;
  const JobConfig job = window_job(files);
  testing::OneThreadRollout rollout(job);
  // heads begin at zero, where what they read does not matter
  for (auto& [unit, view] : rollout.weights.views) {
    const auto generator = at::detail::createCPUGenerator(3);
    for (const auto& [name, tensor] : view.tensors())
      tensor.add_(0.1 * at::randn(tensor.sizes(), generator, at::kFloat));
  }
  const RolloutBatch batch = rollout.next();
  ASSERT_EQ(batch.calls(), 3);
  const double level = flow_noise_level(job.policy.flow, rollout.weights.version);
  const at::Tensor again = rollout.net().logp(rollout.weights.views, density_inputs(batch, level));
  testing::expect_near(again, batch.logp.flatten(0, 1), 1e-4, "log-probabilities");
  EXPECT_GT(batch.logp.abs().max().item<double>(), 0.01);

  // a call shows the frame of the call before, one in between and its own
  const at::Tensor frames = batch.observation.at(std::string(rl_keys::kImagePrefix) + "rgb.front")
                                .unflatten(2, {3, 64});  // [T+1,B,frames,H,W,3]
  const auto frame = [&](std::int64_t call, std::int64_t index) { return frames[call].select(1, index); };
  EXPECT_TRUE(at::equal(frame(0, 0), frame(0, 2))) << "an episode begins with one frame";
  for (const std::int64_t call : {1, 2}) {
    EXPECT_TRUE(at::equal(frame(call, 0), frame(call - 1, 2))) << call;
    EXPECT_FALSE(at::equal(frame(call, 1), frame(call, 0))) << call;
    EXPECT_FALSE(at::equal(frame(call, 1), frame(call, 2))) << call;
  }
}

}  // namespace
}  // namespace troupe::workers
