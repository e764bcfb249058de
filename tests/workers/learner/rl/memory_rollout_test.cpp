// A policy with a memory over items that follow one another: the learner finds from an item's stored memory what the
// policy said while it acted.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <future>

#include "env/registry/registry.h"
#include "model/loss/rl_keys.h"
#include "tests/support/tensor_checks.h"
#include "workers/inference/agent/agent.h"
#include "workers/learner/rl/initial_policy.h"
#include "workers/learner/rl/rollout_rows.h"
#include "workers/rollout/policy_caller.h"
#include "workers/rollout/simulator_role.h"

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

/// What rollout worker, simulator and learner do, on one thread.
class MemoryRollout {
 public:
  explicit MemoryRollout(const JobConfig& job)
      : job_(job),
        agent_(make_agent(job).value()),
        layout_(make_trajectory_layout(job_, agent_.spec(), *agent_.policy)),
        writer_(job_, agent_.spec(), layout_),
        caller_(job_, agent_.shape, agent_.policy, layout_),
        executor_(Executor::make({.threads = 1})),
        block_(make_block_of(job_, make_env_factory(job_.env).value())(0, *executor_).value()),
        memory_(static_cast<std::size_t>(writer_.block_layout().bytes)),
        history_(writer_.new_history()) {
    weights.views = initial_policy(job_, *agent_.policy, agent_.policy->objective("policy")).value();
    // heads begin near zero, where what they read hardly matters
    for (auto& [unit, view] : weights.views) {
      const auto generator = at::detail::createCPUGenerator(3);
      for (const auto& [name, tensor] : view.tensors())
        tensor.add_(0.3 * at::randn(tensor.sizes(), generator, at::kFloat));
    }
    wait_for([&](auto done) { block_->reset(0, from(), done); });
  }

  /// The item of the next round, which goes on where the last one ended.
  RolloutBatch next() {
    std::vector<std::byte> bytes(static_cast<std::size_t>(layout_.bytes));
    const TrajectoryView item(layout_, bytes.data());
    writer_.begin(item, round_, 0, /*continues=*/round_ > 0, history_);
    writer_.observe(item, 0, from(), StateScale(), history_);
    for (std::int64_t t = 0; t < layout_.calls; ++t) {
      const PolicyCaller::Call call{item, t, round_, 0, history_.memory};
      caller_.act(weights, std::span(&call, 1)).value();
      wait_for([&](auto done) { block_->step(item.action(t), from(), done); });
      writer_.transition(item, t, from(), history_);
      writer_.observe(item, t + 1, from(), StateScale(), history_);
      FinalRows finals;
      writer_.finals(item, t, from(), StateScale(), history_, finals);
      caller_.final_values(weights, call, finals).value();
    }
    caller_.value(weights, {item, layout_.calls, round_, 0, history_.memory}).value();
    writer_.finish(item, from(), history_);
    ++round_;
    const std::vector<CollectedItem> items{{.position = 0, .xxh3 = 0, .bytes = bytes}};
    return make_rollout_batch(layout_, *agent_.policy, agent_.shape, items);
  }
  const PolicyNet& net() const { return *agent_.policy; }

  PublishedWeights weights;

 private:
  BlockView from() { return writer_.block(memory_.data()); }
  template <class Begin>
  static void wait_for(const Begin& begin) {
    const auto written = std::make_shared<std::promise<void>>();
    begin([written] { written->set_value(); });
    ASSERT_EQ(written->get_future().wait_for(std::chrono::seconds(30)), std::future_status::ready);
  }

  const JobConfig job_;
  const Agent agent_;
  const TrajectoryLayout layout_;
  const TrajectoryWriter writer_;
  PolicyCaller caller_;
  const std::shared_ptr<Executor> executor_;
  const std::unique_ptr<EnvBlock> block_;
  std::vector<std::byte> memory_;
  BlockHistory history_;
  std::int64_t round_ = 0;
};

class MemoryRolloutTest : public ::testing::TestWithParam<const char*> {};

TEST_P(MemoryRolloutTest, LogProbabilitiesAndValuesComeOutOfTheItemAgain) {
  JobConfig job = memory_job(GetParam());
  job.env.max_episode_steps = 17;  // episodes straddle items, and end within them
  MemoryRollout rollout(job);
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
  MemoryRollout rollout(job);
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
