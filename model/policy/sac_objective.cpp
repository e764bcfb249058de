#include "model/policy/sac_objective.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include "model/loss/rl_keys.h"

namespace troupe::model {
namespace {

constexpr std::int64_t kTargetBlock = 0;  // blocks of the chain: "target", then "critic"

/// [a, logp]: the residual stream behind the actor.
at::Tensor pack(const SquashedAction& sample) {
  return at::cat({sample.action, sample.logp.sum(1, /*keepdim=*/true)}, 1);
}

/// The same parameters, of which no gradient is asked.
ParamView frozen(const ParamView& params) {
  ParamView view;
  for (const auto& [name, tensor] : params.tensors()) view.set(name, tensor.detach());
  return view;
}

at::Tensor optional_tensor(const Batch& batch, const char* key) {
  const auto found = batch.find(key);
  return found == batch.end() ? at::Tensor() : found->second;
}

}  // namespace

Carry SacCriticObjective::prologue(const ParamView& actor, const Batch& batch) const {
  const at::NoGradGuard no_grad;
  return {pack(model_->sample(actor, model_->next_observation(batch), batch.at(rl_keys::kNextNoise))), {}};
}

at::Tensor SacCriticObjective::block(std::int64_t index, const ParamView& params, const Carry& carry,
                                     const Batch& batch) const {
  const auto width = model_->action_width();
  if (index == kTargetBlock) {
    const at::NoGradGuard no_grad;
    const auto values = model_->target_values(params, model_->next_observation(batch), carry.x.narrow(1, 0, width));
    return at::cat({values, carry.x.narrow(1, width, 1)}, 1);
  }
  return at::cat({carry.x.detach(), model_->values(params, batch, batch.at(rl_keys::kAction))}, 1);
}

Outputs SacCriticObjective::epilogue(const ParamView& temperature, const Carry& carry, const Batch& batch) const {
  const auto n = model_->critics();
  const auto next_value = aggregate_critics(carry.x.narrow(1, 0, n).detach(), model_->target_aggregation(),
                                            optional_tensor(batch, rl_keys::kSubset));
  const auto target = sac_target(batch.at(rl_keys::kReward), batch.at(rl_keys::kContinues), next_value,
                                 carry.x.narrow(1, n, 1).detach(), model_->alpha(temperature).detach(),
                                 model_->config().backup_entropy);
  const auto values = carry.x.narrow(1, n + 1, n);
  const auto loss = sac_critic_loss(values, target);
  return {loss,
          {{"sac/critic_loss", loss.detach()},
           {"critic/q_target", target.mean()},
           {"critic/q_data", values.detach().mean()}},
          {}};
}

Carry SacActorObjective::prologue(const ParamView& actor, const Batch& batch) const {
  return {pack(model_->sample(actor, batch, batch.at(rl_keys::kActionNoise))), {}};
}

at::Tensor SacActorObjective::block(std::int64_t index, const ParamView& params, const Carry& carry,
                                    const Batch& batch) const {
  if (index == kTargetBlock) return carry.x;
  const auto width = model_->action_width();
  // the gradient goes through Q to the action, not to Q's weights
  return at::cat({carry.x.narrow(1, width, 1), model_->values(frozen(params), batch, carry.x.narrow(1, 0, width))}, 1);
}

Outputs SacActorObjective::epilogue(const ParamView& temperature, const Carry& carry, const Batch&) const {
  const auto logp = carry.x.narrow(1, 0, 1);
  const auto values = carry.x.narrow(1, 1, model_->critics());
  const auto value = aggregate_critics(values, model_->actor_aggregation(), {});
  const auto alpha = model_->alpha(temperature);
  const auto actor_loss = sac_actor_loss(logp, value, alpha);
  Outputs out{actor_loss, {}, {}};
  if (model_->temperature_kind() != TemperatureKind::fixed) {
    const auto temperature_loss = sac_temperature_loss(alpha, logp, model_->target_entropy());
    out.loss = actor_loss + temperature_loss;
    out.metrics["sac/alpha_loss"] = temperature_loss.detach();
  }
  out.metrics["sac/actor_loss"] = actor_loss.detach();
  out.metrics["sac/alpha"] = alpha.detach();
  out.metrics["actor/entropy"] = -logp.detach().mean();
  out.metrics["critic/q_pi"] = value.detach().mean();
  const auto means = values.detach().mean(0);
  for (std::int64_t i = 0; i < model_->critics(); ++i) out.metrics["critic/q_value_" + std::to_string(i)] = means[i];
  return out;
}

}  // namespace troupe::model
