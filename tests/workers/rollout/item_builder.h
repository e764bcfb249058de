#pragma once

#include <ATen/ATen.h>

#include <vector>

#include "base/hash.h"
#include "configs/job_config.h"
#include "tests/support/visible.h"
#include "tests/workers/rollout/scripted_net.h"
#include "workers/rollout/collected_item.h"
#include "workers/rollout/ended_rows.h"
#include "workers/rollout/policy_shape_of.h"
#include "workers/rollout/trajectory_layout.h"

namespace troupe::testing {

/// An environment with two numbers and, on request, a frame of one pixel; one action between -1 and 1.
inline EnvSpec line_spec(bool has_image = false) {
  EnvSpec spec;
  spec.id = "line-v1";
  spec.observation = {{.name = "state", .shape = {2}}};
  if (has_image) spec.observation.push_back({.name = "rgb", .shape = {1, 1, 3}, .dtype = EnvDType::u8});
  spec.action = {.choices = 0, .size = 1, .low = {-1}, .high = {1}};
  spec.max_steps = 100;
  return spec;
}

/// A job over `blocks` blocks of two environments, `calls` policy calls an item.
inline JobConfig line_job(Algorithm algorithm, std::int64_t calls, std::int64_t chunk = 1, std::int64_t blocks = 1) {
  JobConfig job;
  job.env.num_envs = 2 * blocks;
  job.env.blocks = blocks;
  job.env.chunk = chunk;
  job.rollout.steps = calls * chunk;
  job.algorithm.name = algorithm;
  job.algorithm.gamma = 0.5;
  job.algorithm.policy_gradient.gae_lambda = 0.5;
  job.algorithm.policy_gradient.reward_level = "chunk";
  return job;
}

/// A trajectory item whose numbers say where they come from: the state before call t of row r is (100 number + 10 t +
/// r, -1), the action's first number the same, the reward 1, every action executed; nothing ends.
class ItemBuilder {
 public:
  ItemBuilder(const JobConfig& job, const EnvSpec& spec, std::int64_t number = 0)
      : spec_(spec),
        net_({.actions = job.env.chunk, .choices = 0, .has_value = !job.algorithm.traits().is_off_policy()}),
        layout_(make_trajectory_layout(job, spec_, net_)),
        number_(number),
        memory_(static_cast<std::size_t>(layout_.fixed_bytes)) {
    for (std::int64_t t = 0; t <= layout_.calls; ++t) {
      for (std::size_t r = 0; r < rows(); ++r) {
        view().state(t)[2 * r] = mark(t, r);
        view().state(t)[2 * r + 1] = -1;
        for (std::size_t p = 0; p < layout_.images.size(); ++p)
          view().image(p, t)[image_bytes(p) * r] = static_cast<std::uint8_t>(mark(t, r));
      }
    }
    for (std::int64_t t = 0; t < layout_.calls; ++t) {
      for (std::size_t r = 0; r < rows(); ++r) {
        view().action(t)[r * chunk()] = mark(t, r);
        view().executed(t)[r] = static_cast<std::int32_t>(chunk());
        for (std::size_t k = 0; k < chunk(); ++k) {
          view().reward(t)[r * chunk() + k] = 1;
          view().valid(t)[r * chunk() + k] = 1;
        }
      }
    }
    view().head().env_steps = layout_.calls * layout_.rows * layout_.chunk;
  }

  float mark(std::int64_t t, std::size_t row) const {
    return static_cast<float>(100 * number_ + 10 * t + static_cast<std::int64_t>(row));
  }
  /// First byte of every picture at which an episode ended.
  std::uint8_t final_mark(std::int64_t t, std::size_t row) const { return static_cast<std::uint8_t>(mark(t, row) + 5); }
  TrajectoryView view() { return {layout_, memory_.data()}; }
  const TrajectoryLayout& layout() const { return layout_; }
  const ScriptedNet& net() const { return net_; }
  PolicyShape shape(const JobConfig& job) const { return *policy_shape_of(spec_, job.env, job.policy); }

  /// The episode of `row` ends in action `k` of call t, at the state mark + 0.5; later actions of the chunk are not
  /// executed.
  ItemBuilder& end(std::int64_t t, std::size_t row, bool terminated, std::size_t k = 0) {
    (terminated ? view().terminated(t) : view().truncated(t))[row * chunk() + k] = 1;
    view().done(t)[row] = 1;
    view().executed(t)[row] = static_cast<std::int32_t>(k + 1);
    for (std::size_t later = k + 1; later < chunk(); ++later) {
      view().valid(t)[row * chunk() + later] = 0;
      view().reward(t)[row * chunk() + later] = 0;
    }
    if (layout_.final_state.is_present()) view().final_state(t)[2 * row] = mark(t, row) + 0.5f;
    const std::int32_t number =
        EndedRows(ConstTrajectoryView(layout_, memory_.data())).number(t, static_cast<std::int64_t>(row));
    const std::int64_t at = layout_.fixed_bytes + number * layout_.final_image_bytes;
    memory_.insert(memory_.begin() + at, static_cast<std::size_t>(layout_.final_image_bytes), std::byte{0});
    for (std::size_t p = 0; p < layout_.final_images.size(); ++p) view().final_image(p, number)[0] = final_mark(t, row);
    return *this;
  }
  /// The environment of `row` failed in call t.
  ItemBuilder& lose(std::int64_t t, std::size_t row) {
    view().lost(t)[row] = 1;
    view().done(t)[row] = 1;
    view().executed(t)[row] = 0;
    view().truncated(t)[row * chunk()] = 1;
    return *this;
  }
  /// The row does nothing from call t on.
  ItemBuilder& freeze(std::int64_t t, std::size_t row) {
    for (; t < layout_.calls; ++t) {
      view().executed(t)[row] = 0;
      for (std::size_t k = 0; k < chunk(); ++k) view().valid(t)[row * chunk() + k] = 0;
      for (std::size_t k = 0; k < chunk(); ++k) view().reward(t)[row * chunk() + k] = 0;
    }
    return *this;
  }

  CollectedItem item(std::int64_t position) const {
    return {.position = position, .xxh3 = xxh3_64(std::span<const std::byte>(memory_)), .bytes = memory_};
  }
  std::span<const std::byte> bytes() const { return memory_; }

 private:
  std::size_t rows() const { return static_cast<std::size_t>(layout_.rows); }
  std::size_t chunk() const { return static_cast<std::size_t>(layout_.chunk); }
  /// Of one row.
  std::size_t image_bytes(std::size_t index) const {
    const RecordField& field = layout_.images[index];
    return static_cast<std::size_t>(field.bytes / (field.shape[0] * field.shape[1]));
  }

  const EnvSpec spec_;
  const ScriptedNet net_;
  const TrajectoryLayout layout_;
  const std::int64_t number_;
  std::vector<std::byte> memory_;
};

}  // namespace troupe::testing
