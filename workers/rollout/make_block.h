#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "base/result.h"
#include "configs/job_config.h"
#include "env/env_block.h"
#include "env/env_factory.h"
#include "env/executor.h"

namespace troupe::workers {

/// Makes the environments of one block of the job.
using MakeBlock = std::function<Result<std::unique_ptr<EnvBlock>>(std::int64_t block, Executor& executor)>;

/// As the job says: environments [block * n, (block + 1) * n), job.seed, reset mode, chunk, group size. The returned
/// function may be called by any thread. Its errors: those of EnvBlock::make and make_reward_rules.
MakeBlock make_block_of(const JobConfig& job, std::shared_ptr<const EnvFactory> factory);
/// env.reset_mode: "episode", "fixed", or "auto" (ResetMode::same_step).
ResetMode reset_mode_of(const EnvConfig& env);

}  // namespace troupe::workers
