#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "model/policy/action_head.h"
#include "model/policy/mlp_pass.h"
#include "model/policy/observation_net.h"
#include "model/policy/policy_gradient_objective.h"
#include "model/policy/policy_net.h"
#include "model/policy/spare_pool.h"

namespace troupe::model {

/// Separate networks of one policy: an actor with an ActionHead, and a critic (none with grpo). Units "actor",
/// "critic", "loss". A critic answers with one value, or one per action of a chunk where rewards are counted per action
/// (algorithm.policy_gradient.reward_level).
class ActorCritic final : public OnPolicyModel {
 public:
  /// Errors: invalid_argument, as make_policy_net.
  static Result<std::shared_ptr<const ActorCritic>> make(const PolicyConfig& policy, const AlgorithmConfig& algorithm,
                                                         const PolicyShape& shape);

  const std::vector<UnitSpec>& units() const override { return units_; }
  std::int64_t logp_width() const override { return head_.logp_width(); }
  std::int64_t value_width() const override { return critic_ ? critic_->outputs() : 0; }
  ActionDensity density(const ParamView& actor, const Batch& batch) const override;
  at::Tensor value(const ParamView& critic, const Batch& batch) const override;

  /// Which choices are allowed, [N,C]: a view of the state's last columns; undefined where all always are.
  at::Tensor mask(const Batch& batch) const;

  const ObservationNet& actor() const noexcept { return actor_; }
  const std::optional<ObservationNet>& critic() const noexcept { return critic_; }
  const ActionHead& head() const noexcept { return head_; }
  /// Both networks are Mlps over the state, without memory or layer norm: MlpPass and ActionHeadPass differentiate
  /// them.
  bool has_manual_backward() const;
  /// Of the actor and the critic, called like their units; empty with policy.memory none.
  const std::vector<MemoryField>& memory() const noexcept { return memory_; }

 private:
  ActorCritic(ObservationNet actor, std::optional<ObservationNet> critic, const ActionHead& head);

  ObservationNet actor_;
  std::optional<ObservationNet> critic_;
  ActionHead head_;
  std::vector<UnitSpec> units_;
  std::vector<MemoryField> memory_;
};

/// Policies of kind mlp for the on-policy algorithms. Errors: as make_policy_net.
Result<std::shared_ptr<const PolicyNet>> make_actor_critic_net(const PolicyConfig& policy,
                                                               const AlgorithmConfig& algorithm,
                                                               const PolicyShape& shape);

/// The PolicyNet over an ActorCritic. Where the networks are plain Mlps, observations contiguous f32 states on the CPU
/// and parameters f32, it acts by act_on_rows(), with MlpPass; else by ObservationNet. Working memory is kept for later
/// calls.
class ActorCriticNet final : public PolicyNet {
 public:
  ActorCriticNet(std::shared_ptr<const ActorCritic> model, const AlgorithmConfig& algorithm, const PolicyShape& shape);

  const std::vector<UnitSpec>& units() const override { return model_->units(); }
  const std::vector<std::string>& acting_units() const override { return acting_units_; }
  const std::vector<ExtraField>& extras() const override { return extras_; }
  const std::vector<MemoryField>& memory() const override { return model_->memory(); }
  std::int64_t logp_width() const override { return model_->logp_width(); }
  std::int64_t value_width() const override { return model_->value_width(); }
  ActResult act(const UnitViews& views, const ActRequest& request) const override;
  bool acts_on_rows() const override { return model_->has_manual_backward(); }
  void act_on_rows(const UnitViews& views, const RowsToAct& rows) const override;
  at::Tensor value(const UnitViews& views, const Batch& observation) const override;
  at::Tensor logp(const UnitViews& views, const Batch& batch) const override;
  /// "policy" alone. Throws c10::Error on another phase.
  std::shared_ptr<const Network> objective(const std::string& phase) const override;

 private:
  const std::shared_ptr<const ActorCritic> model_;
  const std::shared_ptr<const Network> objective_;
  std::vector<std::string> acting_units_;
  const std::vector<ExtraField> extras_;
  mutable SparePool<MlpPass> actor_spares_, critic_spares_;
};

}  // namespace troupe::model
