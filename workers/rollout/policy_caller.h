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

namespace troupe::workers {

/// Asks the policy for the rows of one or several blocks at once, straight from items into items. One thread.
///
/// The draws of a row depend on (job.seed, environment id, agent, policy step since the job's start) alone: not on how
/// blocks are batched, nor on which worker asks. With e the environment's id times its agents, plus the agent, and s =
/// round * T + call the key of a row's counter generator is mix64(mix64(e + 1) + 0x9E3779B97F4A7C15 (s + 1)) modulo
/// 2^64.
class PolicyCaller {
 public:
  /// One block at one policy call: its observation lies in `item`, its answer goes there. Views; the item and the
  /// block's history must outlive the call.
  struct Call {
    TrajectoryView item;
    /// 0 .. T - 1; T for the value of the last observation.
    std::int64_t call = 0;
    std::int64_t round = 0;
    std::int64_t block = 0;
    /// BlockHistory::memory, which act() reads and overwrites and value() reads.
    std::span<std::vector<float>> memory = {};
  };

  /// `layout` must outlive the caller.
  PolicyCaller(const JobConfig& job, const PolicyShape& shape, std::shared_ptr<const PolicyNet> net,
               const TrajectoryLayout& layout);

  /// Writes action, logp, value, extras, version and memory of all calls, by one set of weights. With an off-policy
  /// algorithm, the actions of a call are uniform (in the action's bounds, or over its choices; version -1) if fewer
  /// than sac.learning_starts environment steps of the job lie before it. Errors: internal (what the policy threw).
  Result<void> act(const PublishedWeights& weights, std::span<const Call> calls);
  /// Writes value[call], [n, V], from the observation at `call`; nothing without a critic. Errors: internal.
  Result<void> value(const PublishedWeights& weights, const Call& call);
  /// Writes final_value[call] of the rows that ended, from the observations in `finals`; nothing without a critic.
  /// Errors: internal.
  Result<void> final_values(const PublishedWeights& weights, const Call& call, const FinalRows& finals);

 private:
  /// State, frames, texts and memories of all calls as one batch [calls * n, ...]; a view of the item where there is
  /// one call.
  Batch observation(std::span<const Call> calls) const;
  void act_uniformly(const Call& call);
  /// Straight from item to item, of a policy that takes plain rows; keys_ are those of the calls' rows.
  void act_on_rows(const PublishedWeights& weights, std::span<const Call> calls) const;
  /// round * steps_per_round + call * blocks * n * exec_steps < uniform_steps_: the same for all rows of a call.
  bool is_uniform(const Call& call) const;
  std::uint64_t key(const Call& call, std::int64_t row) const;

  const std::shared_ptr<const PolicyNet> net_;
  const TrajectoryLayout& layout_;
  const PolicyShape shape_;
  const RlShape rl_;
  const FlowPolicyConfig flow_;
  const std::uint64_t seed_;
  /// sac.learning_starts, environment steps over the whole job; 0 with on-policy algorithms.
  const std::int64_t uniform_steps_;
  std::vector<std::string> image_keys_, text_keys_, memory_keys_;
  std::vector<std::uint64_t> keys_;
};

}  // namespace troupe::workers
