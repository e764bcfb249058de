#include "model/policy/manual_sac.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <cmath>

#include "model/loss/rl_keys.h"

namespace troupe::model {
namespace {

constexpr double kTanhEpsilon = 1e-6;  // sample_squashed's

at::Tensor plain_rows(const at::Tensor& x) { return x.to(at::kFloat).contiguous(); }

std::vector<std::unique_ptr<MlpPass>> make_passes(const std::vector<ObservationNet>& nets, std::int64_t rows) {
  std::vector<std::unique_ptr<MlpPass>> passes;
  for (const auto& net : nets) passes.push_back(std::make_unique<MlpPass>(net.mlp(), rows));
  return passes;
}

void zero(const ParamView& gradients) {
  for (const auto& [name, tensor] : gradients.tensors()) tensor.zero_();
}

void check_chain(const std::vector<ParamView>& params, const std::vector<ParamView>& gradients, std::size_t units) {
  TORCH_CHECK(params.size() == units && gradients.size() == units, "views of ", params.size(), " and gradients of ",
              gradients.size(), " units; the chain has ", units);
}

double mean_of(const at::Tensor& x) { return x.mean().item<double>(); }

/// d(aggregate)/d(values), [N,Q]: equal critics share.
at::Tensor aggregate_slope(const at::Tensor& values, const at::Tensor& aggregate, CriticAggregation aggregation) {
  if (aggregation == CriticAggregation::mean) return at::full_like(values, 1.0 / static_cast<double>(values.size(1)));
  const auto is_least = (values == aggregate).to(at::kFloat);
  return is_least / is_least.sum(1, /*keepdim=*/true);
}

}  // namespace

bool has_manual_sac(const SacModel& model) {
  const auto fits = [](const ObservationNet& net) { return net.is_plain_mlp() && MlpPass::supports(net.mlp()); };
  // the targets have the critics' shapes
  return fits(model.actor_net()) && fits(model.online_nets().front());
}

SacWorkspace::SacWorkspace(const SacModel& model, std::int64_t rows, bool with_targets)
    : actor(model.actor_net().mlp(), rows),
      critics(make_passes(model.online_nets(), rows)),
      targets(with_targets ? make_passes(model.target_nets(), rows) : std::vector<std::unique_ptr<MlpPass>>{}),
      input(at::empty({rows, model.online_nets().front().mlp().shape().inputs}, at::kFloat)) {}

const at::Tensor& SacWorkspace::critic_input(const at::Tensor& state, const at::Tensor& action) {
  at::cat_out(input, {state, action}, 1);
  return input;
}

at::Tensor SacWorkspace::values(std::vector<std::unique_ptr<MlpPass>>& passes, const ParamView& view,
                                const at::Tensor& input) {
  std::vector<at::Tensor> values;
  for (auto& pass : passes) values.push_back(pass->forward(view, input));
  return at::cat(values, 1);
}

MicroResult ManualSacCritic::run(const std::vector<ParamView>& params, const Batch& batch, double weight,
                                 const std::vector<ParamView>& gradients) const {
  const at::NoGradGuard no_grad;
  check_chain(params, gradients, model_->units().size());
  const auto next_state = plain_rows(batch.at(rl_keys::kNextState));
  const std::int64_t rows = next_state.size(0), critics = model_->critics();
  const auto work =
      spares_.borrow(rows, [&] { return std::make_unique<SacWorkspace>(*model_, rows, /*with_targets=*/true); });

  const auto [mean, log_std] =
      model_->split(work->actor.forward(params[SacModel::kActor], model_->actor_rows(next_state)));
  const auto sample = sample_squashed(mean, log_std, batch.at(rl_keys::kNextNoise), model_->range());
  const auto subset = batch.find(rl_keys::kSubset);
  const auto next_values =
      SacWorkspace::values(work->targets, params[SacModel::kTarget], work->critic_input(next_state, sample.action));
  const auto next = aggregate_critics(next_values, model_->target_aggregation(),
                                      subset == batch.end() ? at::Tensor() : subset->second);
  const auto target =
      sac_target(batch.at(rl_keys::kReward), batch.at(rl_keys::kContinues), next, sample.logp.sum(1, /*keepdim=*/true),
                 model_->alpha(params[SacModel::kTemperature]), model_->config().backup_entropy);

  const auto& input = work->critic_input(plain_rows(batch.at(rl_keys::kState)), batch.at(rl_keys::kAction));
  const auto values = SacWorkspace::values(work->critics, params[SacModel::kCritic], input);
  const auto loss = sac_critic_loss(values, target);
  if (!gradients[SacModel::kCritic].tensors().empty()) {
    const auto slope = ((values - target) * (2.0 * weight / static_cast<double>(rows * critics))).t().contiguous();
    for (std::int64_t i = 0; i < critics; ++i) {
      work->critics[static_cast<std::size_t>(i)]->backward(params[SacModel::kCritic], input, slope[i].unsqueeze(1),
                                                           &gradients[SacModel::kCritic]);
    }
  }
  zero(gradients[SacModel::kActor]);
  zero(gradients[SacModel::kTemperature]);
  const double value = loss.item<double>();
  return {value,
          {{"sac/critic_loss", value}, {"critic/q_target", mean_of(target)}, {"critic/q_data", mean_of(values)}}};
}

at::Tensor ManualSacActor::output_gradient(const at::Tensor& outputs, const SquashedAction& sample,
                                           const at::Tensor& noise, const at::Tensor& d_action, double d_logp) const {
  const auto width = model_->action_width();
  const auto raw = outputs.narrow(1, width, width);
  const auto [mean, log_std] = model_->split(outputs);
  const auto squashed = sample.u.tanh();
  // da/du = scale (1 - tanh^2), and the correction is log(da/du + 1e-6)
  const auto slope = model_->range().scale * (1 - squashed.square());
  const auto d_u = d_action * slope + (2.0 * d_logp) * squashed * slope / (slope + kTanhEpsilon);
  // log_std moves u by std * noise, and the density by -1
  const auto d_log_std = d_u * log_std.exp() * noise - d_logp;
  return at::cat({d_u, d_log_std * (0.5 * model_->log_std_range()) * (1 - raw.tanh().square())}, 1);
}

MicroResult ManualSacActor::run(const std::vector<ParamView>& params, const Batch& batch, double weight,
                                const std::vector<ParamView>& gradients) const {
  const at::NoGradGuard no_grad;
  check_chain(params, gradients, model_->units().size());
  const auto state = plain_rows(batch.at(rl_keys::kState));
  const auto noise = batch.at(rl_keys::kActionNoise);
  const std::int64_t rows = state.size(0), critics = model_->critics();
  const auto work =
      spares_.borrow(rows, [&] { return std::make_unique<SacWorkspace>(*model_, rows, /*with_targets=*/false); });

  const auto actor_state = model_->actor_rows(state);
  const auto& outputs = work->actor.forward(params[SacModel::kActor], actor_state);
  const auto [mean, log_std] = model_->split(outputs);
  const auto sample = sample_squashed(mean, log_std, noise, model_->range());
  const auto logp = sample.logp.sum(1, /*keepdim=*/true);
  const auto& input = work->critic_input(state, sample.action);
  const auto values = SacWorkspace::values(work->critics, params[SacModel::kCritic], input);
  const auto value = aggregate_critics(values, model_->actor_aggregation(), {});
  const auto alpha = model_->alpha(params[SacModel::kTemperature]);
  const double actor_loss = sac_actor_loss(logp, value, alpha).item<double>(), temperature = alpha.item<double>();
  MicroResult result{actor_loss,
                     {{"sac/actor_loss", actor_loss}, {"sac/alpha", temperature}, {"critic/q_pi", mean_of(value)}}};
  const double mean_logp = mean_of(logp);
  result.metrics["actor/entropy"] = -mean_logp;
  for (std::int64_t i = 0; i < critics; ++i)
    result.metrics["critic/q_value_" + std::to_string(i)] = mean_of(values.select(1, i));

  const double share = weight / static_cast<double>(rows);
  if (!gradients[SacModel::kActor].tensors().empty()) {
    const auto slope = (aggregate_slope(values, value, model_->actor_aggregation()) * -share).t().contiguous();
    const auto d_input = at::empty_like(input);
    at::Tensor d_action;
    for (std::int64_t i = 0; i < critics; ++i) {
      work->critics[static_cast<std::size_t>(i)]->backward(params[SacModel::kCritic], input, slope[i].unsqueeze(1),
                                                           nullptr, &d_input);
      const auto part = d_input.narrow(1, state.size(1), model_->action_width());
      d_action = d_action.defined() ? d_action + part : part.clone();
    }
    const auto d_outputs = output_gradient(outputs, sample, noise, d_action, share * temperature);
    work->actor.backward(params[SacModel::kActor], actor_state, d_outputs, &gradients[SacModel::kActor]);
  }
  if (model_->temperature_kind() != TemperatureKind::fixed) {
    const double gap = mean_logp + model_->target_entropy();
    result.metrics["sac/alpha_loss"] = -temperature * gap;
    result.loss += -temperature * gap;
    if (const auto& view = gradients[SacModel::kTemperature]; view.contains(SacModel::kTemperatureParam)) {
      // d exp(p) = alpha, d softplus(p) = sigmoid(p) = 1 - exp(-alpha)
      const double d_alpha =
          model_->temperature_kind() == TemperatureKind::exp ? temperature : -std::expm1(-temperature);
      view[SacModel::kTemperatureParam].fill_(-weight * gap * d_alpha);
    }
  }
  zero(gradients[SacModel::kCritic]);
  return result;
}

}  // namespace troupe::model
