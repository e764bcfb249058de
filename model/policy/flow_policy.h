#pragma once

#include <memory>
#include <string>
#include <vector>

#include "model/policy/flow_model.h"
#include "model/policy/policy_net.h"

namespace troupe::model {

/// The PolicyNet over a FlowModel. Extras: "chains" [S+1,W], the chain of denoised chunks in [-1,1] units, and
/// "denoise_inds" [1] (integer), the step that drew; -1 where none did. Phases: "policy" (policy_gradient_objective.h)
/// and "sft" (flow_imitation.h).
class FlowPolicyNet final : public PolicyNet {
 public:
  FlowPolicyNet(std::shared_ptr<const FlowModel> model, const AlgorithmConfig& algorithm, const PolicyShape& shape);

  const std::vector<UnitSpec>& units() const override { return model_->units(); }
  const std::vector<std::string>& acting_units() const override { return acting_units_; }
  const std::vector<ExtraField>& extras() const override { return extras_; }
  std::int64_t logp_width() const override { return model_->logp_width(); }
  std::int64_t value_width() const override { return model_->value_width(); }
  /// CounterRng(seed, rng_stream::policy_action, keys[i]) gives row i, in this order: the initial noise, the step that
  /// draws, that step's noise (joint: the noise of every step). `deterministic`: ODE steps from the same initial noise,
  /// log-probabilities 0. `noise_level` is the a of flow_weights: flow_noise_level of the iteration.
  ActResult act(const UnitViews& views, const ActRequest& request) const override;
  at::Tensor value(const UnitViews& views, const Batch& observation) const override;
  at::Tensor logp(const UnitViews& views, const Batch& batch) const override;
  /// Throws c10::Error on another phase.
  std::shared_ptr<const Network> objective(const std::string& phase) const override;

 private:
  const std::shared_ptr<const FlowModel> model_;
  std::vector<std::string> acting_units_;
  std::vector<ExtraField> extras_;
  std::shared_ptr<const Network> policy_objective_, imitation_objective_;
};

/// For policy.kind flow and an on-policy algorithm. Errors: as FlowModel::make.
Result<std::shared_ptr<const PolicyNet>> make_flow_policy_net(const PolicyConfig& policy,
                                                              const AlgorithmConfig& algorithm,
                                                              const PolicyShape& shape);

}  // namespace troupe::model
