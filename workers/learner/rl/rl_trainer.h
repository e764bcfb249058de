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

namespace troupe {

/// What a trainer of reinforcement learning is made of. The feed outlives the trainer.
struct RlTrainerSetup {
  JobConfig config;
  Agent agent;
  std::string actor;  ///< "learner/0"
  std::int64_t incarnation = 0;
  std::string run_dir;         ///< eval/ and replay/ are written below it
  WeightPublisher::Dial dial;  ///< reaches a rollout worker's weight channel
};

/// OnPolicyTrainer or OffPolicyTrainer, by algorithm.name.
std::unique_ptr<Trainer> make_rl_trainer(RlTrainerSetup setup, Feed& feed);

/// How a rank's feed hands out rounds of trajectories: `rank` of `world` has the blocks [rank * M / world, ...).
Feed::Options rl_feed_options(const JobConfig& job, std::int64_t rank, std::int64_t world,
                              std::int64_t rollout_workers);

/// How far rollouts may be ahead, in rounds: on-policy a version is a step of the job, off-policy a round.
RoundCollector::Options rl_collector_options(const JobConfig& job);

/// As many versions as rollouts may still ask for.
WeightPublisher::Options rl_publisher_options(const RlTrainerSetup& setup);

/// job_engine_options with slots for every unit, no recompute, and the groups' own clip norms.
EngineOptions rl_engine_options(const JobConfig& job, const PolicyNet& policy);

/// Learning rates of the unit groups in step `step`.
GroupRates rl_rates(const JobConfig& job, std::int64_t step);

}  // namespace troupe
