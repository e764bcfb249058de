#pragma once

#include <memory>
#include <string>
#include <vector>

#include "model/policy/policy_net.h"
#include "model/policy/sac_model.h"
#include "model/policy/spare_pool.h"

namespace troupe::model {

/// Soft actor-critic's PolicyNet: acts with the squashed Gaussian, publishes the actor alone, and has the phases
/// "critic" and "actor" (sac_objective.h). logp_width and value_width are 0.
class SacPolicyNet final : public PolicyNet {
 public:
  SacPolicyNet(std::shared_ptr<const SacModel> model, const AlgorithmConfig& algorithm);
  ~SacPolicyNet() override;

  const std::vector<UnitSpec>& units() const override { return model_->units(); }
  const std::vector<std::string>& acting_units() const override { return acting_units_; }
  const std::vector<ExtraField>& extras() const override { return extras_; }
  std::int64_t logp_width() const override { return 0; }
  std::int64_t value_width() const override { return 0; }
  /// Row i draws its noise with CounterRng(seed, rng_stream::policy_action, keys[i]); `deterministic`: tanh of the
  /// mean.
  ActResult act(const UnitViews& views, const ActRequest& request) const override;
  /// Where the actor is a plain Mlp.
  bool acts_on_rows() const override { return acts_on_rows_; }
  void act_on_rows(const UnitViews& views, const RowsToAct& rows) const override;
  /// Throws c10::Error: rollout workers ask no critic.
  at::Tensor value(const UnitViews& views, const Batch& observation) const override;
  /// Throws c10::Error on another phase.
  std::shared_ptr<const Network> objective(const std::string& phase) const override;

 private:
  /// Memory of a call for some rows.
  struct Acting;

  const std::shared_ptr<const SacModel> model_;
  const bool acts_on_rows_;
  const std::vector<std::string> acting_units_ = {"actor"};
  const std::vector<ExtraField> extras_;
  std::shared_ptr<const Network> critic_objective_, actor_objective_;
  mutable SparePool<Acting> spares_;
};

/// For algorithm.name sac. Errors: as SacModel::make.
Result<std::shared_ptr<const PolicyNet>> make_sac_policy_net(const PolicyConfig& policy,
                                                             const AlgorithmConfig& algorithm,
                                                             const PolicyShape& shape);

}  // namespace troupe::model
