#include "workers/rollout/make_block.h"

#include <utility>

#include "env/reward/reward_registry.h"
#include "placement/rl_shape.h"

namespace troupe::workers {

ResetMode reset_mode_of(const EnvConfig& env) {
  return env.reset_mode == "episode" ? ResetMode::episode
         : env.reset_mode == "fixed" ? ResetMode::fixed
                                     : ResetMode::same_step;
}

MakeBlock make_block_of(const JobConfig& job, std::shared_ptr<const EnvFactory> factory) {
  const RlShape rl = rl_shape(job);
  const EnvBlock::Options common{.first_env = 0,
                                 .envs = rl.envs,
                                 .chunk = rl.chunk,
                                 .exec_steps = job.env.exec_steps,
                                 .reset_mode = reset_mode_of(job.env),
                                 .group_size = job.env.group_size,
                                 .max_steps = job.env.max_episode_steps,
                                 .stagger = job.env.stagger,
                                 .seed = static_cast<std::uint64_t>(job.job.seed)};
  const auto reward = make_reward_rules(job.env.reward, job.algorithm, factory->spec());
  return [factory = std::move(factory), common, reward](std::int64_t block,
                                                        Executor& executor) -> Result<std::unique_ptr<EnvBlock>> {
    if (!reward) return reward.error();
    EnvBlock::Options options = common;
    options.reward = *reward;
    options.first_env = block * common.envs;
    return EnvBlock::make(factory, options, executor);
  };
}

}  // namespace troupe::workers
