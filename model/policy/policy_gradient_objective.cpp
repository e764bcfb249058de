#include "model/policy/policy_gradient_objective.h"

#include <ATen/ATen.h>

#include "model/policy/ppo_loss_op.h"

namespace troupe::model {

UnitSpec make_loss_unit() {
  return {.name = "loss", .layout_class = "loss", .params = {}, .trainable = false, .group = "actor"};
}

PolicyGradientObjective::PolicyGradientObjective(std::shared_ptr<const OnPolicyModel> model,
                                                 const PolicyGradientOptions& options,
                                                 std::unique_ptr<const ManualBackward> manual_backward)
    : model_(std::move(model)), options_(options), manual_backward_(std::move(manual_backward)) {}

Carry PolicyGradientObjective::prologue(const ParamView& params, const Batch& batch) const {
  const auto density = model_->density(params, batch);
  return {at::cat({density.logp, density.entropy}, 1), {}};
}

at::Tensor PolicyGradientObjective::block(std::int64_t, const ParamView& params, const Carry& carry,
                                          const Batch& batch) const {
  return at::cat({carry.x, model_->value(params, batch)}, 1);
}

Outputs PolicyGradientObjective::epilogue(const ParamView&, const Carry& carry, const Batch& batch) const {
  auto inputs = policy_gradient_inputs(batch);
  if (options_.kl_beta == 0) inputs.reference_logp = at::Tensor();
  auto result = ppo_loss_op(carry.x, model_->logp_width(), model_->value_width(), std::move(inputs), options_);
  return {result.loss, std::move(result.metrics), {}};
}

}  // namespace troupe::model
