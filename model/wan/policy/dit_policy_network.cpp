#include "model/wan/policy/dit_policy_network.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <limits>
#include <string>
#include <utility>

#include "model/loss/rl_keys.h"
#include "model/policy/flow_step.h"
#include "model/policy/ppo_loss_op.h"
#include "model/wan/batch_keys.h"
#include "model/wan/infer/action_density.h"
#include "model/wan/layers.h"

namespace troupe::model {

namespace key = batch_keys;

// Timesteps are those of a policy call: not rounded, and one for video and actions, whatever fine-tuning drew.
DitPolicyNetwork::DitPolicyNetwork(const ModelConfig& model, std::int64_t max_blocks, NoiseLevels levels,
                                   std::int64_t action_dim, const PolicyGradientOptions& options)
    : dit_(model, max_blocks, DitOptions{.collapse_text_pads = model.text_pad_collapse}, schedule_of(levels)),
      levels_(std::move(levels)),
      action_dim_(action_dim),
      options_(options),
      units_(dit_.units()) {
  for (auto& unit : units_) unit.group = "actor";
}

BoundProgram DitPolicyNetwork::unit_program(std::size_t unit, const ParamView& params, const Carry& carry,
                                            const Batch& batch, RecomputeLevel level,
                                            const Differentiated& differentiated) const {
  if (unit + 1 == units_.size()) return {};
  return dit_.unit_program(unit, params, carry, batch, level, differentiated);
}

at::Tensor DitPolicyNetwork::of_rows(const at::Tensor& velocity, const Batch& batch) {
  const auto slots = batch.find(kSlots);
  if (slots == batch.end()) return velocity;
  const auto& drawn = batch_tensor(batch, std::string(rl_keys::kExtraPrefix) + dreamzero_extra::kNext);
  return velocity.reshape({-1, drawn.size(1), velocity.size(2)}).index_select(0, slots->second);
}

at::Tensor DitPolicyNetwork::counted(const at::Tensor& of_block) const {
  return of_block.narrow(1, 0, options_.chunk).narrow(2, 0, action_dim_).flatten(1);
}

at::Tensor DitPolicyNetwork::density(const at::Tensor& velocity, const Batch& batch) const {
  // f32 in a bf16 network too: a distance of a few widths would keep two digits
  const auto dtype = accumulate_type(velocity.scalar_type());
  const auto extra = [&batch](const char* name) -> const at::Tensor& {
    return batch_tensor(batch, std::string(rl_keys::kExtraPrefix) + name);
  };
  const auto x = counted(extra(dreamzero_extra::kActions)).to(dtype);
  const auto next = counted(extra(dreamzero_extra::kNext)).to(dtype);
  const auto step = extra(dreamzero_extra::kStep).view({-1});
  const auto moments = action_moments(x, counted(of_rows(velocity, batch)).to(dtype), levels_, step.clamp_min(0),
                                      batch_tensor(batch, rl_keys::kNoiseLevel).item<double>());
  const auto drew = (step >= 0).unsqueeze(1);
  const auto logp = flow_step_logp(next, moments.mean, at::where(drew, moments.std, 0.0), /*safe=*/false);
  const auto finite = batch_tensor(batch, kFiniteRows).unsqueeze(1);
  return at::where(finite, logp, std::numeric_limits<double>::quiet_NaN());
}

Outputs DitPolicyNetwork::epilogue(const ParamView& params, const Carry& carry, const Batch& batch) const {
  auto outputs = dit_.epilogue(params, carry, batch);
  const auto logp = density(outputs.predictions.at(key::kActionVelocity), batch);
  auto inputs = policy_gradient_inputs(batch);
  if (options_.kl_beta == 0) inputs.reference_logp = at::Tensor();
  const auto stream = at::cat({logp, at::zeros_like(logp)}, 1);
  auto result = ppo_loss_op(stream, logp_width(), /*value_width=*/0, std::move(inputs), options_);
  outputs.loss = std::move(result.loss);
  outputs.metrics = std::move(result.metrics);
  return outputs;
}

at::Tensor DitPolicyNetwork::logp(const UnitViews& views, const Batch& batch) const {
  const at::NoGradGuard no_grad;
  auto carry = prologue(views.at(units_.front().name), batch);
  for (std::size_t i = 1; i + 1 < units_.size(); ++i)
    carry.x = block(static_cast<std::int64_t>(i) - 1, views.at(units_[i].name), carry, batch);
  const auto outputs = dit_.epilogue(views.at(units_.back().name), carry, batch);
  return density(outputs.predictions.at(key::kActionVelocity), batch);
}

}  // namespace troupe::model
