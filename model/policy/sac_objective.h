#pragma once

#include <memory>
#include <vector>

#include "model/policy/sac_model.h"
#include "model/shard/manual_backward.h"
#include "model/shard/network.h"

namespace troupe::model {

// The two objectives of soft actor-critic over the chain of SacModel (arXiv:1812.05905 eq. 5 to 7 and 18). Batches hold
// rl_keys: state, action, reward, next state, continues, noise.next and optionally subset for the critics; state and
// noise.action for the actor. Each unit passes on what the later ones need in the residual stream and nothing of what
// it does not train. Stateless and thread-safe.

/// What both hold.
class SacObjective : public Network {
 public:
  /// `manual_backward` may be null.
  explicit SacObjective(std::shared_ptr<const SacModel> model,
                        std::unique_ptr<const ManualBackward> manual_backward = nullptr)
      : model_(std::move(model)), manual_backward_(std::move(manual_backward)) {}
  const std::vector<UnitSpec>& units() const override { return model_->units(); }
  const ManualBackward* manual_backward() const override { return manual_backward_.get(); }

 protected:
  const std::shared_ptr<const SacModel> model_;

 private:
  const std::unique_ptr<const ManualBackward> manual_backward_;
};

/// Trains the critics:
///     y = r + continues (agg Q'(s', a') - alpha logp(a'|s'))    a' ~ actor(s')
///     loss = mean over networks and rows of (Q_i(s,a) - y)^2
/// Residual stream: [a', logp'] -> [Q', logp'] -> [Q', logp', Q].
/// Metrics: sac/critic_loss, critic/q_target (mean y), critic/q_data (mean over networks too).
class SacCriticObjective final : public SacObjective {
 public:
  using SacObjective::SacObjective;
  Carry prologue(const ParamView& actor, const Batch& batch) const override;
  at::Tensor block(std::int64_t index, const ParamView& params, const Carry& carry, const Batch& batch) const override;
  Outputs epilogue(const ParamView& temperature, const Carry& carry, const Batch& batch) const override;
};

/// Trains the actor and the temperature:
///     loss = mean(alpha logp(a|s) - agg Q(s,a)) - alpha (mean(logp) + H_target)    a ~ actor(s)
/// where each term sees the other's part as a number: alpha of the first, logp of the second.
/// Residual stream: [a, logp] -> the same -> [logp, Q].
/// Metrics: sac/actor_loss, sac/alpha, sac/alpha_loss (not with a fixed one), actor/entropy (-mean logp), critic/q_pi,
/// and
///          critic/q_value_<i> of every network at the actor's action.
class SacActorObjective final : public SacObjective {
 public:
  using SacObjective::SacObjective;
  Carry prologue(const ParamView& actor, const Batch& batch) const override;
  at::Tensor block(std::int64_t index, const ParamView& params, const Carry& carry, const Batch& batch) const override;
  Outputs epilogue(const ParamView& temperature, const Carry& carry, const Batch& batch) const override;
};

}  // namespace troupe::model
