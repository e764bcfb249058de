// A policy with a memory over items that follow one another: the learner finds from an item's stored memory what the
// policy said while it acted.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "model/loss/rl_keys.h"
#include "tests/support/tensor_checks.h"
#include "tests/workers/learner/rl/one_thread_rollout.h"
#include "workers/learner/rl/rollout_rows.h"

namespace troupe::workers {
namespace {

/// Four environments in one block, 12 policy calls an item.
JobConfig memory_job(const std::string& env) {
  JobConfig job;
  job.job.kind = JobKind::rl;
  job.env.id = env;
  job.env.num_envs = 4;
  job.env.blocks = 1;
  job.rollout.steps = 12;
  job.policy.hidden = {16};
  job.policy.memory = PolicyMemory::gru;
  job.policy.memory_width = 8;
  return job;
}

/// Heads begin near zero, where what they read hardly matters.
void spread_weights(OneThreadRollout& rollout) {
  for (auto& [unit, view] : rollout.weights.views) {
    const auto generator = at::detail::createCPUGenerator(3);
    for (const auto& [name, tensor] : view.tensors())
      tensor.add_(0.3 * at::randn(tensor.sizes(), generator, at::kFloat));
  }
}

class MemoryRolloutTest : public ::testing::TestWithParam<const char*> {};

TEST_P(MemoryRolloutTest, LogProbabilitiesAndValuesComeOutOfTheItemAgain) {
  JobConfig job = memory_job(GetParam());
  job.env.max_episode_steps = 17;  // episodes straddle items, and end within them
  OneThreadRollout rollout(job);
  spread_weights(rollout);
  bool remembers = false, begins = false;
  for (int round = 0; round < 4; ++round) {
    const RolloutBatch batch = rollout.next();
    const Batch stored = density_inputs(batch, 0);
    testing::expect_near(rollout.net().logp(rollout.weights.views, stored), batch.logp.flatten(0, 1), 1e-5, "logp");
    testing::expect_near(rollout.net().value(rollout.weights.views, stored),
                         batch.value.narrow(0, 0, batch.calls()).flatten(0, 1), 1e-5, "values");
    remembers = remembers || batch.memory.at("actor").abs().max().item<float>() > 0.1;
    begins = begins || batch.begins.any().item<bool>();
  }
  EXPECT_TRUE(remembers && begins) << "both were met";
}

TEST_P(MemoryRolloutTest, RowsOfTheLossAreSequences) {
  const JobConfig job = memory_job(GetParam());
  OneThreadRollout rollout(job);
  spread_weights(rollout);
  (void)rollout.next();
  const RolloutBatch batch = rollout.next();
  const RolloutRows rows = make_rollout_rows(job, batch, {.reward = batch.reward});
  EXPECT_EQ(rows.sequence, 12);
  EXPECT_EQ(rows.count, 48);
  EXPECT_TRUE(at::equal(rows.rows.at(std::string(rl_keys::kMemoryPrefix) + "critic"), batch.memory.at("critic")));
  EXPECT_EQ(rows.rows.at(rl_keys::kBegins).sizes().vec(), (std::vector<std::int64_t>{48, 1}));
}

INSTANTIATE_TEST_SUITE_P(All, MemoryRolloutTest, ::testing::Values("tmaze-v1", "Pendulum-v1"),
                         [](const auto& param_info) { return std::string(param_info.param).substr(0, 5); });

}  // namespace
}  // namespace troupe::workers
