#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/result.h"
#include "configs/algorithm_config.h"
#include "configs/policy_config.h"
#include "model/policy/flow_sampler.h"
#include "model/policy/mlp.h"
#include "model/policy/observation_features.h"
#include "model/policy/observation_net.h"
#include "model/policy/policy_gradient_objective.h"
#include "model/policy/policy_shape.h"
#include "model/policy/squashed_gaussian.h"
#include "model/shard/network.h"

namespace troupe::model {

/// A small flow-matching policy: an Mlp velocity over [features of the observation, noisy chunk, embedding of the
/// time], with Flow-Noise a second one for the widths (two hidden layers of 64, tanh), and a critic, an ObservationNet
/// of its own, whose value does not depend on the chain. The time's embedding is [sin(pi k t), cos(pi k t)], k = 1 ..
/// 8. Units "actor", "critic" (none with grpo), "loss". Immutable, thread-safe.
///
/// Shape legend: N batch rows, S denoising steps, W = K*A numbers of a chunk. Inside the policy a chunk is scaled by
/// the bounds of the actions to [-1, 1]; chains are kept so, and not clipped. A batch holds the extras "extra.chains"
/// [N,S+1,W] and "extra.denoise_inds" [N,1] i64.
class FlowModel final : public OnPolicyModel {
 public:
  /// Errors: invalid_argument for discrete actions, bounds that are missing or not finite, Flow-Noise that is not
  /// joint, Flow-CPS whose last step may be the one that draws, no step that draws, per_step without joint,
  /// ignore_first with joint; names the key. Else as ObservationFeatures::make.
  static Result<std::shared_ptr<const FlowModel>> make(const PolicyConfig& policy, const AlgorithmConfig& algorithm,
                                                       const PolicyShape& shape);

  const std::vector<UnitSpec>& units() const override { return units_; }
  /// W; S*W with logprob_reduce per_step: numbers (action k, step, dimension), k slowest.
  std::int64_t logp_width() const override;
  std::int64_t value_width() const override { return critic_ ? critic_->mlp().shape().outputs : 0; }
  /// From the batch's chains; the noise level is rl_keys::kNoiseLevel, or the configuration's start. Entropy: of
  /// Flow-Noise, else 0.
  ActionDensity density(const ParamView& actor, const Batch& batch) const override;
  at::Tensor value(const ParamView& critic, const Batch& batch) const override;

  /// Velocity (and width) at N observations, for the sampler: x [N,W], t [N] to [N,W] each. Keeps a reference to
  /// `actor`, which must outlive it, and the features of the observations.
  FlowNetwork network(const ParamView& actor, const Batch& observation) const;
  /// Between chunks [N,W] in [-1,1] and actions in the environment's units, a = scale x + bias: to_action clips x to
  /// [-1,1] first, from_action does not clip.
  at::Tensor to_action(const at::Tensor& chunk) const;
  at::Tensor from_action(const at::Tensor& action) const;
  /// From per-element log-probabilities of chains to [N, logp_width()].
  at::Tensor flatten(const at::Tensor& logp) const;

  std::int64_t width() const noexcept { return chunk_ * action_dim_; }
  std::int64_t chunk() const noexcept { return chunk_; }
  const FlowPolicyConfig& config() const noexcept { return config_; }
  /// Of the configuration, at a noise level.
  FlowSampling sampling(double noise_level) const;

 private:
  FlowModel(const FlowPolicyConfig& config, const PolicyShape& shape, ObservationFeatures seen, Mlp velocity,
            std::optional<Mlp> noise, std::optional<ObservationNet> critic);

  FlowPolicyConfig config_;
  std::int64_t chunk_, action_dim_;
  ActionRange range_;
  ObservationFeatures seen_;
  Mlp velocity_;
  std::optional<Mlp> noise_;
  std::optional<ObservationNet> critic_;
  std::vector<UnitSpec> units_;
};

}  // namespace troupe::model
