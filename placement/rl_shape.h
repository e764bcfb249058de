#pragma once

#include <algorithm>
#include <cstdint>

#include "base/namespaces.h"
#include "configs/job_config.h"

namespace troupe::placement {

/// The arithmetic of reinforcement learning that every role agrees on without talking: how environments become blocks,
/// rounds and positions (docs/rl.md). Position p of the feed is one *trajectory item*: block p mod blocks of round p /
/// blocks. Environments of block b are [b * envs, (b + 1) * envs).
struct RlShape {
  std::int64_t blocks = 1;      ///< M
  std::int64_t envs = 1;        ///< environments of a block
  std::int64_t chunk = 1;       ///< K: actions per policy call
  std::int64_t exec_steps = 1;  ///< of them executed
  std::int64_t calls = 1;       ///< T: policy calls of one item
  std::int64_t rounds_per_step =
      1;  ///< rounds of one transaction: rollout.epochs, or off-policy commit_every / steps of a round

  std::int64_t items_per_step() const { return blocks * rounds_per_step; }
  /// Control steps of all environments in one round.
  std::int64_t env_steps_per_round() const { return blocks * envs * calls * exec_steps; }
  std::int64_t env_steps_per_step() const { return env_steps_per_round() * rounds_per_step; }
};

/// Of a configuration that passed validation (configs/validate_rl.cpp). With env.blocks 0 there are as many blocks as
/// divide the environments' groups, 4 at most: enough to simulate while others are answered.
inline RlShape rl_shape(const JobConfig& job) {
  RlShape shape;
  const std::int64_t groups =
      std::max<std::int64_t>(1, job.env.num_envs / std::max<std::int64_t>(1, job.env.group_size));
  shape.blocks = job.env.blocks;
  for (std::int64_t blocks = std::min<std::int64_t>(4, groups); shape.blocks == 0; --blocks) {
    if (groups % blocks == 0) shape.blocks = blocks;
  }
  shape.envs = std::max<std::int64_t>(1, job.env.num_envs / shape.blocks);
  shape.chunk = job.env.chunk;
  shape.exec_steps = job.env.executed();
  shape.calls = std::max<std::int64_t>(1, job.rollout.steps / shape.exec_steps);
  shape.rounds_per_step = is_off_policy(job)
                              ? std::max<std::int64_t>(1, job.rollout.commit_every / shape.env_steps_per_round())
                              : job.rollout.epochs;
  return shape;
}

}  // namespace troupe::placement
