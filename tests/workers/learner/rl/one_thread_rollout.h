#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <future>
#include <memory>
#include <span>
#include <vector>

#include "base/check.h"
#include "env/registry/registry.h"
#include "tests/support/visible.h"
#include "workers/inference/agent/agent.h"
#include "workers/learner/rl/initial_policy.h"
#include "workers/learner/rl/rollout_batch.h"
#include "workers/rollout/policy_caller.h"
#include "workers/rollout/simulator_role.h"

namespace troupe::testing {

/// What rollout worker, simulator and learner do, on one thread.
class OneThreadRollout {
 public:
  explicit OneThreadRollout(const JobConfig& job)
      : job_(job),
        agent_(make_agent(job).value()),
        layout_(make_trajectory_layout(job_, agent_.spec(), *agent_.policy)),
        writer_(job_, agent_.spec(), layout_),
        caller_(job_, agent_.shape, agent_.policy, layout_),
        executor_(Executor::make({.threads = 1})),
        block_(make_block_of(job_, make_env_factory(job_.env).value())(0, *executor_).value()),
        memory_(static_cast<std::size_t>(writer_.block_layout().bytes)),
        history_(writer_.new_history()) {
    weights.views = initial_policy(job_, *agent_.policy).value();
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
  const Agent& agent() const { return agent_; }
  const TrajectoryLayout& layout() const { return layout_; }
  const PolicyNet& net() const { return *agent_.policy; }

  PublishedWeights weights;

 private:
  BlockView from() { return writer_.block(memory_.data()); }
  template <class Begin>
  static void wait_for(const Begin& begin) {
    const auto written = std::make_shared<std::promise<void>>();
    begin([written] { written->set_value(); });
    TROUPE_CHECK(written->get_future().wait_for(std::chrono::seconds(30)) == std::future_status::ready,
                 "a block answers");
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

}  // namespace troupe::testing
