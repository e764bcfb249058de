#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "base/namespaces.h"

namespace troupe::configs {

/// How experience is collected: rounds, staleness, batches of the policy, normalisation. Read with job.kind rl;
/// imitation only checks that normalize_obs is false (docs/rl.md).
struct RolloutConfig {
  /// Steps, 1 to 2^24. Read by workers/rollout, placement.
  /// A multiple of the executed actions of a chunk.
  std::int64_t steps = 32;
  /// 1 to 2^16. Read by placement, workers/learner/rl.
  std::int64_t epochs = 1;
  /// Versions, 0 to 2^16.
  /// Above 0 only with decoupled_ppo and vtrace, whose losses know older policies.
  std::int64_t staleness = 0;
  /// Steps, 1 to 2^40. Read by placement, workers/learner/rl.
  /// Read with sac only; too large costs work after a failure, too small costs commits.
  std::int64_t commit_every = 1000;
  /// 1 to 2^16. Read by workers/rollout.
  /// algorithm.deterministic wants 1.
  std::int64_t batch_blocks = 1;
  /// Ms, 0 to 60000. Read by workers/rollout.
  std::chrono::duration<double, std::milli> max_wait{2};
  /// Bytes, 4096 to 2^30. Read by workers/rollout, actors, placement.
  std::int64_t bucket_bytes = 4 << 20;
  /// Read by workers/learner/rl, workers/rollout, workers/inference/agent.
  bool normalize_obs = false;
  /// Read by workers/rollout, workers/learner/rl.
  bool normalize_reward = false;
  /// 0 to 1e9. Read by workers/inference/agent, workers/rollout.
  double clip_obs = 10;
  /// 0 to 1e9. Read by workers/learner/rl.
  double clip_reward = 10;

  template <class V>
  static void describe(V& v) {
    v.field("steps", &RolloutConfig::steps, "control steps per environment and rollout; a multiple of env.chunk",
            "steps", 1, 1 << 24);
    v.field("epochs", &RolloutConfig::epochs, "E: rollouts that one on-policy iteration trains on", "count", 1,
            1 << 16);
    v.field("staleness", &RolloutConfig::staleness,
            "S: updates of the policy that a rollout may be behind; 0: collect and train in turn", "versions", 0,
            1 << 16);
    v.field("commit_every", &RolloutConfig::commit_every,
            "off-policy: environment steps of one transaction, with their updates; a multiple of num_envs * steps",
            "steps", 1, 1LL << 40);
    v.field(
        "batch_blocks", &RolloutConfig::batch_blocks,
        "blocks whose observations are answered by one policy call; 0: all that wait; 1 makes results independent of "
        "timing",
        "count", 0, 1 << 16);
    v.field("max_wait_ms", &RolloutConfig::max_wait,
            "with batch_blocks above 1: longest wait of the oldest request before an incomplete batch is answered",
            "ms", 0, 60000);
    v.field("bucket_bytes", &RolloutConfig::bucket_bytes, "size of the pieces in which weights are published", "bytes",
            4096, 1 << 30);
    v.field("normalize_obs", &RolloutConfig::normalize_obs,
            "observations minus running mean over running standard deviation");
    v.field("normalize_reward", &RolloutConfig::normalize_reward,
            "rewards over the running standard deviation of the discounted return");
    v.field("clip_obs", &RolloutConfig::clip_obs, "bound of normalised observations", "", 0, 1e9);
    v.field("clip_reward", &RolloutConfig::clip_reward, "bound of normalised rewards", "", 0, 1e9);
  }
};

}  // namespace troupe::configs
