#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "workers/inference/agent/load_agent.h"
#include "workers/inference/policy/policy.h"
#include "workers/rollout/policy_shape_of.h"

namespace troupe::workers {

/// A policy that was trained by reinforcement learning behind the interface that servers know (policy.h): views are the
/// observation's frames, state its vectors by field name, the action is one vector "action" [A] and a chunk has
/// env.chunk rows; of discrete actions the index. Deterministic: mean, most likely action or ODE, with the statistics
/// of the checkpoint, clipped to the environment's bounds. What a policy with a memory remembers is kept by episode,
/// one step a call. The prompt is the text that a policy with policy.text is told, else it is not read. Depth is taken
/// as f32 [H,W] or [H,W,1] metres in the size that the policy was trained with.
class AgentPolicy final : public Policy {
 public:
  /// `name` is for logs and health. Errors: invalid_argument for a u8 frame without three channels, which no protocol
  /// carries, and for a policy that is told several texts, as a request brings one.
  static Result<std::unique_ptr<AgentPolicy>> make(LoadedAgent loaded, const std::string& name);

  const PolicyInfo& info() const override { return info_; }
  /// All observations in one call of the network. Frames of other sizes are resized (antialiased, bilinear).
  std::vector<Result<ActionChunk>> act(std::span<const Observation> observations) override;
  void reset(const std::string& episode) override { memories_.erase(episode); }

 private:
  /// One observation as the network takes it.
  struct Row {
    std::string episode;
    /// [D], not yet normalised.
    std::vector<float> state;
    /// u8 [H,W,3] or, of depth, f32 [H,W,1] (metres) each.
    std::vector<at::Tensor> images;
    /// As its field holds it; empty where the policy reads no text.
    std::string text;
  };
  AgentPolicy(LoadedAgent loaded, const std::string& name);
  Result<Row> read(const Observation& observation) const;
  /// Actions of all rows; their episodes remember.
  at::Tensor answer(const std::vector<Row>& rows);
  Result<ActionChunk> chunk_of(const float* actions) const;

  const LoadedAgent loaded_;
  const ObservationParts parts_;
  const StateScale scale_;
  const double noise_level_;
  PolicyInfo info_;
  /// [1,W] each by PolicyNet's names, of the episodes that have begun; empty for a policy without a memory.
  std::map<std::string, std::map<std::string, at::Tensor>> memories_;
};

}  // namespace troupe::workers
