#pragma once

#include <ATen/ATen.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "tests/support/visible.h"
#include "tests/workers/rollout/scripted_net.h"
#include "workers/learner/rl/rollout_batch.h"
#include "workers/rollout/simulator_role.h"
#include "workers/rollout/trajectory_writer.h"

namespace troupe::testing {

/// What B environments do in T calls of K actions, whatever the actions are: [T,B,K] each.
struct RecordedSteps {
  at::Tensor reward;
  /// Not 0: the task is over, or solved. Without `success` it is never solved.
  at::Tensor terminal, success = {};
  /// A reward is the change of `reward` since the action before; before an episode's first it was 0.
  bool is_relative = false;
};

/// Plays the recorded steps [S,3] of one environment (reward, terminal, success), and goes on with them after a reset.
/// Observation f32 [2]: actions since the record began, and since the reset.
class RecordedEnv final : public Env {
 public:
  RecordedEnv(const EnvSpec& spec, at::Tensor steps, bool is_relative)
      : spec_(spec), steps_(std::move(steps)), is_relative_(is_relative) {}

  const EnvSpec& spec() const noexcept override { return spec_; }
  Result<void> reset(std::uint64_t, StepSlot out) override {
    elapsed_ = 0;
    last_ = 0;
    return observe(out);
  }
  Result<void> step(std::span<const float>, StepSlot out) override {
    const double* now = steps_.const_data_ptr<double>() + 3 * played_++;
    ++elapsed_;
    *out.reward = is_relative_ ? now[0] - last_ : now[0];
    *out.terminated = now[1] != 0;
    *out.success = now[2] != 0;
    last_ = now[0];
    return observe(out);
  }
  Result<void> observe(StepSlot out) override {
    const auto observation = out.field<float>(0, 2);
    observation[0] = static_cast<float>(played_);
    observation[1] = static_cast<float>(elapsed_);
    return {};
  }

 private:
  const EnvSpec& spec_;
  const at::Tensor steps_;
  const bool is_relative_;
  std::int64_t played_ = 0, elapsed_ = 0;
  double last_ = 0;
};

/// Makes the environments of a record, the first one first.
class RecordedEnvFactory final : public EnvFactory {
 public:
  RecordedEnvFactory(const RecordedSteps& steps, std::int64_t action_size) : is_relative_(steps.is_relative) {
    const auto success = steps.success.defined() ? steps.success : at::zeros_like(steps.reward);
    for (const auto& x : {steps.reward, steps.terminal, success}) steps_.push_back(x.to(at::kDouble));
    spec_.id = "recorded-v1";
    spec_.observation = {{.name = "state", .shape = {2}}};
    spec_.action.size = action_size;
    spec_.action.low.assign(static_cast<std::size_t>(action_size), -1);
    spec_.action.high.assign(static_cast<std::size_t>(action_size), 1);
    spec_.has_success = true;
  }
  const EnvSpec& spec() const noexcept override { return spec_; }
  Result<std::unique_ptr<Env>> make() const override {
    const auto own = at::stack(steps_, 3).select(1, made_++).reshape({-1, 3}).contiguous();
    return std::unique_ptr<Env>(std::make_unique<RecordedEnv>(spec_, own, is_relative_));
  }

 private:
  EnvSpec spec_;
  std::vector<at::Tensor> steps_;
  const bool is_relative_;
  mutable std::atomic<std::int64_t> made_{0};
};

/// A job whose only block plays records of this shape.
inline JobConfig recorded_job(at::IntArrayRef shape_TBK, const std::string& reset_mode) {
  JobConfig job;
  job.env.num_envs = shape_TBK[1];
  job.env.blocks = 1;
  job.env.chunk = shape_TBK[2];
  job.env.reset_mode = reset_mode;
  job.rollout.steps = shape_TBK[0] * shape_TBK[2];
  return job;
}

/// The item that a job's block and TrajectoryWriter make of a record, by the calls of a rollout worker, and what both
/// said after every call.
class PlayedItem {
 public:
  PlayedItem(JobConfig job, const RecordedSteps& steps, std::int64_t action_size = 1)
      : job_(std::move(job)),
        factory_(std::make_shared<RecordedEnvFactory>(steps, action_size)),
        net_({.actions = job_.env.chunk * action_size, .choices = 0}),
        layout_(make_trajectory_layout(job_, factory_->spec(), net_)),
        bytes_(static_cast<std::size_t>(layout_.bytes)) {
    const auto shape = {layout_.calls, layout_.rows};
    for (auto* x : {&total, &length, &success_once, &success_at_end}) *x = at::zeros(shape, at::kDouble);
    for (auto* x : {&observation, &last_observation})
      *x = at::zeros({layout_.calls, layout_.rows, layout_.state_dim}, at::kFloat);
    play();
  }

  TrajectoryView view() { return {layout_, bytes_.data()}; }
  const TrajectoryLayout& layout() const { return layout_; }
  CollectedItem item() const { return {.position = 0, .xxh3 = 0, .bytes = bytes_}; }
  /// Items of this layout, side by side.
  RolloutBatch batch_of(std::span<const CollectedItem> items) const {
    return make_rollout_batch(layout_, net_, *policy_shape_of(factory_->spec(), job_.env, job_.policy), items);
  }
  RolloutBatch batch() const {
    const CollectedItem own[] = {item()};
    return batch_of(own);
  }

  /// f64 [T,B]: of the episode that ended in a call, by its record in the item, else of the one under way, by the
  /// block's history.
  at::Tensor total, length, success_once, success_at_end;
  /// f32 [T,B,2]: after a call, and the same but for the last observation of an episode that ended in it.
  at::Tensor observation, last_observation;

 private:
  void play() {
    const auto executor = Executor::make({.threads = 1});
    const auto block = make_block_of(job_, factory_)(0, *executor).value();
    const TrajectoryWriter writer(job_, factory_->spec(), layout_);
    const std::vector<float> actions(static_cast<std::size_t>(layout_.rows * layout_.chunk * layout_.action_dim));
    std::vector<std::byte> memory(static_cast<std::size_t>(writer.block_layout().bytes));
    const BlockView from = writer.block(memory.data());
    BlockHistory history = writer.new_history();
    const auto wait_for = [](const auto& begin) {
      const auto written = std::make_shared<std::promise<void>>();
      begin([written] { written->set_value(); });
      TROUPE_CHECK(written->get_future().wait_for(std::chrono::seconds(30)) == std::future_status::ready,
                   "a block of recorded environments answers");
    };
    wait_for([&](auto done) { block->reset(0, from, done); });
    writer.begin(view(), 0, 0, /*continues=*/false, history);
    writer.observe(view(), 0, from, StateScale(), history);
    for (std::int64_t t = 0; t < layout_.calls; ++t) {
      wait_for([&](auto done) { block->step(actions, from, done); });
      writer.transition(view(), t, from, history);
      writer.observe(view(), t + 1, from, StateScale(), history);
      FinalRows finals;
      writer.finals(view(), t, from, StateScale(), history, finals);
      note_history(t, from, history);
      note_observations(t, finals);
    }
    writer.finish(view(), from, history);
    note_records();
  }
  void note_history(std::int64_t t, const BlockView& from, const BlockHistory& history) {
    for (std::int64_t b = 0; b < layout_.rows; ++b) {
      const auto row = static_cast<std::size_t>(b);
      note(t, b, from.episode_return()[row], from.step()[row], history.success[row]);
    }
  }
  void note_records() {
    for (std::int64_t t = 0; t < layout_.calls; ++t) {
      for (std::int64_t b = 0; b < layout_.rows; ++b) {
        const auto row = static_cast<std::size_t>(b);
        if (view().ended(t)[row] == 0) continue;
        note(t, b, view().episode_return(t)[row], view().episode_length(t)[row], view().episode_success(t)[row]);
      }
    }
  }
  void note(std::int64_t t, std::int64_t b, double sum, std::int32_t steps, std::uint8_t success) {
    total[t][b] = sum;
    length[t][b] = steps;
    success_once[t][b] = success & 1;
    success_at_end[t][b] = success >> 1;
  }
  void note_observations(std::int64_t t, FinalRows& finals) {
    const auto width = layout_.state_dim;
    observation[t].copy_(at::from_blob(view().state(t + 1).data(), {layout_.rows, width}, at::kFloat));
    last_observation[t].copy_(observation[t]);
    for (std::size_t i = 0; i < finals.rows.size(); ++i) {
      last_observation[t][finals.rows[i]].copy_(
          at::from_blob(finals.state.data() + i * static_cast<std::size_t>(width), {width}, at::kFloat));
    }
  }

  JobConfig job_;
  std::shared_ptr<const RecordedEnvFactory> factory_;
  ScriptedNet net_;
  TrajectoryLayout layout_;
  std::vector<std::byte> bytes_;
};

/// Bool [T,B,K]: what a block executes where its environments end at the flags [T+1,B,K] and none begins again. Row 0
/// of the flags, the state before the first call, is not read.
inline at::Tensor executed_steps(const at::Tensor& dones_T1BK) {
  const auto ends = dones_T1BK.narrow(0, 1, dones_T1BK.size(0) - 1);
  return PlayedItem(recorded_job(ends.sizes(), "episode"), {at::zeros_like(ends), ends}).batch().mask;
}

}  // namespace troupe::testing
