#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "model/loss/policy_gradient_loss.h"
#include "model/policy/action_head.h"
#include "model/shard/manual_backward.h"
#include "model/shard/network.h"

namespace troupe::model {

/// What an on-policy algorithm asks of a policy while it learns: densities of stored actions, and values. Stateless and
/// thread-safe.
class OnPolicyModel {
 public:
  virtual ~OnPolicyModel() = default;
  /// The chain: the actor, the critic if it has one, and last a unit without parameters for the loss (make_loss_unit).
  virtual const std::vector<UnitSpec>& units() const = 0;
  /// L, numbers of a row's log-probability, unreduced.
  virtual std::int64_t logp_width() const = 0;
  /// V, values of a row: 1, or K with rewards per action; 0: no critic.
  virtual std::int64_t value_width() const = 0;
  /// Of the batch's actions: log-probability and entropy, both [N,L]. Differentiable by autograd.
  virtual ActionDensity density(const ParamView& actor, const Batch& batch) const = 0;
  /// [N,V] f32, of the batch's observations. Differentiable by autograd. Only with value_width() > 0.
  virtual at::Tensor value(const ParamView& critic, const Batch& batch) const = 0;
};

/// The unit of an objective's epilogue: it has no parameters and is not trained.
UnitSpec make_loss_unit();

/// objective("policy") of every on-policy policy: PPO, GRPO (no critic), decoupled PPO and V-trace, which differ in
/// what the batch holds and in the options. Prologue: the actor's densities. Block: the critic. Epilogue: the loss
/// (ppo_loss_op.h). The residual stream is [N, 2L+V]: log-probabilities, entropies, values side by side. Stateless and
/// thread-safe.
class PolicyGradientObjective final : public Network {
 public:
  /// `manual_backward` may be null. With kl_beta 0 reference log-probabilities of a batch are ignored.
  PolicyGradientObjective(std::shared_ptr<const OnPolicyModel> model, const PolicyGradientOptions& options,
                          std::unique_ptr<const ManualBackward> manual_backward = nullptr);

  const std::vector<UnitSpec>& units() const override { return model_->units(); }
  Carry prologue(const ParamView& params, const Batch& batch) const override;
  at::Tensor block(std::int64_t index, const ParamView& params, const Carry& carry, const Batch& batch) const override;
  Outputs epilogue(const ParamView& params, const Carry& carry, const Batch& batch) const override;
  const ManualBackward* manual_backward() const override { return manual_backward_.get(); }

 private:
  const std::shared_ptr<const OnPolicyModel> model_;
  const PolicyGradientOptions options_;
  const std::unique_ptr<const ManualBackward> manual_backward_;
};

}  // namespace troupe::model
