#pragma once

#include <memory>
#include <vector>

#include "model/loss/policy_gradient_loss.h"
#include "model/policy/action_head_pass.h"
#include "model/policy/mlp_pass.h"
#include "model/policy/policy_loss_gradient.h"
#include "model/policy/spare_pool.h"
#include "model/shard/manual_backward.h"

namespace troupe::model {

class ActorCritic;

/// PolicyGradientObjective of MLP actor-critics with a manual backward: forward through both networks, the loss's
/// gradient (PolicyLossGradient), backward through the action distribution (ActionHeadPass) and by matrix products
/// (MlpPass), those of actor and critic side by side. Working memory is kept between calls. Thread-safe.
class ManualPolicyGradient final : public ManualBackward {
 public:
  /// `model` must have_explicit_pass(). run() takes the chain's views, actor, critic (not with grpo), loss, and a batch
  /// as PolicyGradientObjective; saved from forward to backward are the layers' outputs and ActionHeadPass's.
  ManualPolicyGradient(std::shared_ptr<const ActorCritic> model, const PolicyGradientOptions& options);
  MicroResult run(const std::vector<ParamView>& params, const Batch& batch, double weight,
                  const std::vector<ParamView>& gradients) const override;

 private:
  struct Workspace {
    Workspace(const ActorCritic& model, const PolicyGradientOptions& options, std::int64_t rows);
    std::int64_t rows() const { return actor.rows(); }
    MlpPass actor;
    ActionHeadPass head;
    std::unique_ptr<MlpPass> critic;
    PolicyLossGradient loss;
  };

  template <class Actor, class Critic>
  static void both(const Workspace& work, const Actor& of_actor, const Critic& of_critic);

  const std::shared_ptr<const ActorCritic> model_;
  const PolicyGradientOptions options_;
  mutable SparePool<Workspace> spares_;
};

}  // namespace troupe::model
