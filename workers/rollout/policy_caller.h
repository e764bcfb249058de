#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "configs/job_config.h"
#include "model/policy/policy_net.h"
#include "placement/rl_shape.h"
#include "workers/rollout/published_weights.h"
#include "workers/rollout/trajectory_writer.h"

namespace troupe {

/// Asks the policy for the rows of one or several blocks at once, straight from items into items. Draws of a row depend on
/// (job.seed, environment id, policy step since the job's start) alone: not on batching, nor on who asks. One thread.
class PolicyCaller {
 public:
  /// One block at one policy call: its observation lies in `item`, its answer goes there.
  struct Call {
    TrajectoryView item;
    std::int64_t call = 0;
    std::int64_t round = 0;
    std::int64_t block = 0;
  };

  PolicyCaller(const JobConfig& job, const PolicyShape& shape, std::shared_ptr<const PolicyNet> net,
               const TrajectoryLayout& layout);

  /// Actions, log-probabilities, values, extras and versions of all calls, by one set of weights. With an off-policy algorithm
  /// actions are uniform before sac.learning_starts environment steps. Errors: internal (what the policy threw).
  Result<void> act(const PolicyWeights& weights, std::span<const Call> calls);
  /// value[T] of an item: nothing without a critic.
  Result<void> value(const PolicyWeights& weights, const Call& call);
  /// final_value[call] of the rows that ended.
  Result<void> final_values(const PolicyWeights& weights, const Call& call, const FinalRows& finals);

 private:
  Batch observation(std::span<const Call> calls) const;
  void act_uniformly(const Call& call);
  bool is_uniform(const Call& call) const;
  std::uint64_t key(const Call& call, std::int64_t row) const;

  const std::shared_ptr<const PolicyNet> net_;
  const TrajectoryLayout& layout_;
  const PolicyShape shape_;
  const RlShape rl_;
  const FlowPolicyConfig flow_;
  const std::uint64_t seed_;
  const std::int64_t uniform_steps_;  ///< environment steps of the job that act uniformly
  std::vector<std::string> image_keys_;
  std::vector<std::uint64_t> keys_;
};

/// a of flow policies after `version` iterations: from noise_level to noise_level_end over noise_anneal_steps.
double flow_noise_level(const FlowPolicyConfig& flow, std::int64_t version);

}  // namespace troupe
