#pragma once

#include <functional>
#include <memory>
#include <string>

#include "configs/job_config.h"
#include "model/shard/engine.h"
#include "placement/rl_shape.h"
#include "workers/inference/agent/agent.h"
#include "workers/learner/rl/round_collector.h"
#include "workers/learner/trainer.h"
#include "workers/rollout/weight_publisher.h"
#include "workers/stream/feed.h"

namespace troupe::workers {

/// Updates in a row with a gradient that is not finite, until the job ends with an error: divergence, not chance.
inline constexpr int kMaxNonfiniteInARow = 3;

/// What a trainer of reinforcement learning is made of. The feed outlives the trainer.
struct RlTrainerSetup {
  JobConfig config;
  Agent agent;
  /// "learner/0".
  std::string actor;
  /// Which start of that actor this is; with `actor` its instance name.
  std::int64_t incarnation = 0;
  /// eval/ and replay/ are written below it.
  std::string run_dir;
  /// Reaches a rollout worker's weight channel.
  ConsumerDial dial;
};

/// OnPolicyTrainer or OffPolicyTrainer, by algorithm.name.
std::unique_ptr<Trainer> make_rl_trainer(RlTrainerSetup setup, Feed& feed);

/// How a rank's feed hands out rounds of trajectories: `rank` of `world` has the blocks [rank * M / world, (rank +
/// 1) * M / world). A feed's step is a round; one lane per block, so that a block stays with its rollout worker.
/// Deterministic jobs await all `rollout_workers` first.
Feed::Options rl_feed_options(const JobConfig& job, std::int64_t rank, std::int64_t world,
                              std::int64_t rollout_workers);

/// How far rollouts may be ahead, in rounds: on-policy a version is a step of the job, off-policy a round. Exact
/// versions with rollout.staleness 0 or algorithm.deterministic.
RoundCollector::Options rl_collector_options(const JobConfig& job);

/// As many versions as rollouts may still ask for: rollout.staleness + 1.
WeightPublisher::Options rl_publisher_options(const RlTrainerSetup& setup);

/// job_engine_options with slots for every unit and no recompute. Groups actor, critic and temperature have clip
/// norms of their own off-policy, or where actor_clip_norm or critic_clip_norm is set; else one norm over all.
EngineOptions rl_engine_options(const JobConfig& job, const PolicyNet& policy);

/// Learning rates of the unit groups in step `step`: the schedule's factor, times 1 - step / total with anneal_lr,
/// times optimizer.lr (actor), value_lr (critic), temperature_lr; 0 there means optimizer.lr.
GroupRates rl_rates(const JobConfig& job, std::int64_t step);

}  // namespace troupe::workers
