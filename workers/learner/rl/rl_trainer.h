#pragma once

#include <map>
#include <memory>
#include <string>

#include "configs/job_config.h"
#include "model/shard/engine.h"
#include "placement/rl_shape.h"
#include "workers/inference/agent/agent.h"
#include "workers/learner/divergence.h"
#include "workers/learner/rl/round_collector.h"
#include "workers/learner/trainer.h"
#include "workers/rollout/weight_publisher.h"
#include "workers/stream/feed.h"

namespace troupe::workers {

/// What a row of updates without a finite gradient, which ends the job, is a row of.
inline const Divergence::Rule kRlDivergence{.updates = "updates", .suspect = "the rewards"};

/// The metrics of a step's micro-batches, to be summed over ranks in the order of their names.
inline model::StepNumbers numbers_of(const std::map<std::string, double>& metrics) {
  model::StepNumbers numbers;
  for (const auto& [name, value] : metrics) numbers.sums.push_back(value);
  return numbers;
}

/// What a trainer of reinforcement learning is made of.
struct RlTrainerSetup {
  LearnerSetup learner;
  Agent agent;
  /// Reaches a rollout worker's weight channel.
  ConsumerDial dial;
};

/// What trainers of reinforcement learning have in common: rounds of trajectories from the feed, and weights for the
/// rollout workers and the evaluator, which plays evaluations beside training. The feed outlives the trainer.
class RlTrainer : public Trainer {
 public:
  EngineOptions engine_options() const override;
  Result<void> conclude(std::int64_t) override { return {}; }
  void cancel(const std::string& why) override { feed_.cancel(why); }
  /// A message about producers that are gone names no addresses.
  void peers(const Peers& peers) override {
    if (peers.gone.empty()) publisher_.set_peers(peers.channels, peers.evaluators);
  }

 protected:
  RlTrainer(const RlTrainerSetup& setup, Feed& feed);
  /// Statistics that rollouts and evaluation normalise with; published with the weights.
  virtual const NormaliserState& normaliser() const = 0;
  /// Begins publishing and collecting in the group of session_, with `version` of the weights. Of the versions that
  /// groups begin with, that behind the last step is evaluated: its evaluation may be missing.
  void begin_at(std::int64_t version);
  /// A version that a step or a round has made.
  void publish(std::int64_t version);

  const LearnerSetup setup_;
  const Agent agent_;
  Feed& feed_;
  RoundCollector collector_;
  WeightPublisher publisher_;
  TrainerSession session_;

 private:
  void publish(std::int64_t version, bool evaluated);

  /// what is published, kept for its memory
  std::vector<std::vector<float>> shards_;
};

/// OnPolicyTrainer or OffPolicyTrainer, by algorithm.name.
std::unique_ptr<Trainer> make_rl_trainer(const RlTrainerSetup& setup, Feed& feed);

/// How a rank's feed hands out rounds of trajectories: `rank` of `world` has the blocks [rank * M / world, (rank +
/// 1) * M / world). A feed's step is a round; one lane per block, so that a block stays with its rollout worker.
/// Deterministic jobs await all `rollout_workers` first.
Feed::Options rl_feed_options(const JobConfig& job, std::int64_t rank, std::int64_t world,
                              std::int64_t rollout_workers);

/// How far rollouts may be ahead, in rounds: on-policy a version is a step of the job, off-policy a round. Exact
/// versions with rollout.staleness 0 or algorithm.deterministic.
RoundCollector::Options rl_collector_options(const JobConfig& job);

/// job_engine_options with slots for every unit and no recompute; DreamZero has both as the job says. Groups actor,
/// critic and temperature have clip norms of their own off-policy, or where actor_clip_norm or critic_clip_norm is set;
/// else one norm over all.
EngineOptions rl_engine_options(const JobConfig& job, const PolicyNet& policy);

/// Learning rates of the unit groups before any schedule: optimizer.lr (actor), value_lr (critic), temperature_lr; 0
/// there means optimizer.lr.
GroupRates configured_rates(const JobConfig& job);
/// Those of step `step`: times the schedule's factor, times 1 - step / total with anneal_lr.
GroupRates rl_rates(const JobConfig& job, std::int64_t step);

}  // namespace troupe::workers
