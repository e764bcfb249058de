#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "configs/job_config.h"
#include "workers/inference/agent/agent.h"
#include "workers/inference/agent/episode_player.h"
#include "workers/rollout/policy_shape_of.h"
#include "workers/rollout/published_weights.h"

namespace troupe::workers {

/// A policy of reinforcement learning plays: the deterministic one, with frozen statistics. All seats are answered in
/// one call of the network, those that do not play too, so that the batch keeps its size. A memory of the policy is
/// zero at the first step of each episode.
class AgentPlayer final : public EpisodePlayer {
 public:
  /// `job` is what the agent was made for.
  AgentPlayer(const Agent& agent, const JobConfig& job, const PublishedWeights& weights);

  std::int64_t chunk() const override { return chunk_; }
  std::int64_t exec_steps() const override { return exec_steps_; }
  Result<at::Tensor> act(std::span<const EpisodeSeat> seats) override;

 private:
  /// Field `index` of one agent's observation; zeros of a seat that has seen nothing.
  const std::byte* field(const EpisodeSeat& seat, std::int64_t agent, std::size_t index);
  /// Adds the memories to the observation, zero where an episode begins.
  void remember(std::span<const EpisodeSeat> seats, Batch& observation);

  const Agent agent_;
  const PublishedWeights weights_;
  const ObservationParts parts_;
  const StateScale scale_;
  const std::int64_t chunk_, exec_steps_;
  const double noise_level_;
  const std::uint64_t seed_;
  std::vector<std::byte> blank_;
  /// [rows,W] by PolicyNet's names, contiguous. Empty before the first call.
  std::map<std::string, at::Tensor> memory_;
};

}  // namespace troupe::workers
