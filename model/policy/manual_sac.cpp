#include "model/policy/manual_sac.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "model/loss/rl_keys.h"
#include "model/policy/side_by_side.h"

namespace troupe::model {
namespace {

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

/// Writes state and action of every row into `input`; where `action` is null the caller writes it.
void join(const at::Tensor& state, const float* action, const at::Tensor& input) {
  const auto D = static_cast<std::size_t>(state.size(1)), W = static_cast<std::size_t>(input.size(1)) - D;
  const float* from = state.const_data_ptr<float>();
  float* to = input.data_ptr<float>();
  for (std::int64_t row = 0; row < state.size(0); ++row, from += D, to += D + W) {
    std::copy_n(from, D, to);
    if (action != nullptr) std::copy_n(action + static_cast<std::size_t>(row) * W, W, to + D);
  }
}

/// Q of every network, [N] each; the networks side by side.
std::vector<const float*> values(const std::vector<std::unique_ptr<MlpPass>>& passes, const ParamView& view,
                                 const at::Tensor& input) {
  std::vector<const float*> found(passes.size());
  side_by_side(static_cast<std::int64_t>(passes.size()), *passes.front(), [&](std::int64_t part) {
    const auto i = static_cast<std::size_t>(part);
    found[i] = passes[i]->forward(view, input).const_data_ptr<float>();
  });
  return found;
}

/// aggregate_critics of one row; NaN is less than any number.
float aggregate(const std::vector<const float*>& values, std::size_t row, CriticAggregation aggregation) {
  float sum = 0, least = values.front()[row];
  for (const float* of_critic : values) {
    const float value = of_critic[row];
    sum += value;
    if (value < least || std::isnan(value)) least = value;
  }
  return aggregation == CriticAggregation::mean ? sum / static_cast<float>(values.size()) : least;
}

double mean_of(const float* x, std::int64_t n) {
  double sum = 0;
  for (std::int64_t i = 0; i < n; ++i) sum += static_cast<double>(x[i]);
  return sum / static_cast<double>(n);
}

double mean_of(const std::vector<const float*>& x, std::int64_t n) {
  double sum = 0;
  for (const float* one : x) sum += mean_of(one, n);
  return sum / static_cast<double>(x.size());
}

}  // namespace

bool has_manual_sac(const SacModel& model) {
  // the targets have the critics' shapes
  return model.actor_net().is_plain_mlp() && model.online_nets().front().is_plain_mlp();
}

SacWorkspace::SacWorkspace(const SacModel& model, std::int64_t rows, bool with_targets)
    : actor(model.actor_net().mlp(), rows),
      critics(make_passes(model.online_nets(), rows)),
      targets(with_targets ? make_passes(model.target_nets(), rows) : std::vector<std::unique_ptr<MlpPass>>{}),
      sample(rows, model.range(), model.log_std_min(), model.log_std_max()),
      input(at::empty({rows, model.online_nets().front().mlp().shape().inputs}, at::kFloat)),
      next_input(with_targets ? at::empty_like(input) : at::Tensor()),
      d_outputs(at::empty({rows, 2 * model.action_width()}, at::kFloat)),
      value(static_cast<std::size_t>(rows)) {
  for (std::size_t i = 0; i < critics.size(); ++i) {
    d_values.push_back(at::empty({rows, 1}, at::kFloat));
    d_inputs.push_back(with_targets ? at::Tensor() : at::empty_like(input));
  }
}

MicroResult ManualSacCritic::run(const std::vector<ParamView>& params, const Batch& batch, double weight,
                                 const std::vector<ParamView>& gradients) const {
  const at::NoGradGuard no_grad;
  check_chain(params, gradients, model_->units().size());
  const auto state = plain_rows(batch.at(rl_keys::kState)), next_state = plain_rows(batch.at(rl_keys::kNextState));
  const auto action = plain_rows(batch.at(rl_keys::kAction)), noise = plain_rows(batch.at(rl_keys::kNextNoise)),
             reward = plain_rows(batch.at(rl_keys::kReward)), continues = plain_rows(batch.at(rl_keys::kContinues));
  const std::int64_t rows = state.size(0), critics = model_->critics();
  const auto work =
      spares_.borrow(rows, [&] { return std::make_unique<SacWorkspace>(*model_, rows, /*with_targets=*/true); });

  std::vector<const float*> q;
  const auto find_target = [&] {
    join(next_state, nullptr, work->next_input);
    const at::Tensor& outputs = work->actor.forward(params[SacModel::kActor], model_->actor_rows(next_state));
    work->sample.forward(outputs.const_data_ptr<float>(), noise.const_data_ptr<float>(),
                         work->next_input.data_ptr<float>() + next_state.size(1), work->next_input.size(1));
    auto next = values(work->targets, params[SacModel::kTarget], work->next_input);
    if (const auto subset = batch.find(rl_keys::kSubset); subset != batch.end()) {
      const auto all = std::exchange(next, {});
      const auto* const chosen = subset->second.const_data_ptr<std::int64_t>();
      for (std::int64_t i = 0; i < subset->second.numel(); ++i)
        next.push_back(all.at(static_cast<std::size_t>(chosen[i])));
    }
    const auto alpha = model_->alpha(params[SacModel::kTemperature]).item<float>();
    for (std::size_t row = 0; row < work->value.size(); ++row) {
      float following = aggregate(next, row, model_->target_aggregation());
      if (model_->config().backup_entropy) following -= alpha * work->sample.logp()[row];
      work->value[row] = reward.const_data_ptr<float>()[row] + continues.const_data_ptr<float>()[row] * following;
    }
  };
  const auto judge = [&] {
    join(state, action.const_data_ptr<float>(), work->input);
    q = values(work->critics, params[SacModel::kCritic], work->input);
  };
  side_by_side(2, *work->critics.front(), [&](std::int64_t part) { part == 0 ? find_target() : judge(); });

  const double cells = static_cast<double>(rows * critics);
  const auto slope = static_cast<float>(2.0 * weight / cells);
  double squares = 0;
  for (std::size_t i = 0; i < q.size(); ++i) {
    float* const d_value = work->d_values[i].data_ptr<float>();
    for (std::size_t row = 0; row < work->value.size(); ++row) {
      const float error = q[i][row] - work->value[row];
      squares += static_cast<double>(error * error);
      d_value[row] = slope * error;
    }
  }
  if (!gradients[SacModel::kCritic].tensors().empty()) {
    side_by_side(critics, *work->critics.front(), [&](std::int64_t part) {
      const auto i = static_cast<std::size_t>(part);
      work->critics[i]->backward(params[SacModel::kCritic], work->input, work->d_values[i],
                                 &gradients[SacModel::kCritic]);
    });
  }
  zero(gradients[SacModel::kActor]);
  zero(gradients[SacModel::kTemperature]);
  return {squares / cells,
          {{"sac/critic_loss", squares / cells},
           {"critic/q_target", mean_of(work->value.data(), rows)},
           {"critic/q_data", mean_of(q, rows)}}};
}

MicroResult ManualSacActor::run(const std::vector<ParamView>& params, const Batch& batch, double weight,
                                const std::vector<ParamView>& gradients) const {
  const at::NoGradGuard no_grad;
  check_chain(params, gradients, model_->units().size());
  const auto state = plain_rows(batch.at(rl_keys::kState)), noise = plain_rows(batch.at(rl_keys::kActionNoise));
  const std::int64_t rows = state.size(0), critics = model_->critics(), width = state.size(1) + model_->action_width();
  const auto work =
      spares_.borrow(rows, [&] { return std::make_unique<SacWorkspace>(*model_, rows, /*with_targets=*/false); });

  const auto actor_state = model_->actor_rows(state);
  const at::Tensor& outputs = work->actor.forward(params[SacModel::kActor], actor_state);
  join(state, nullptr, work->input);
  work->sample.forward(outputs.const_data_ptr<float>(), noise.const_data_ptr<float>(),
                       work->input.data_ptr<float>() + state.size(1), width);
  const auto q = values(work->critics, params[SacModel::kCritic], work->input);

  const auto aggregation = model_->actor_aggregation();
  const auto temperature = model_->alpha(params[SacModel::kTemperature]).item<double>();
  const double share = weight / static_cast<double>(rows);
  double loss = 0;
  for (std::size_t row = 0; row < work->value.size(); ++row) {
    const float value = work->value[row] = aggregate(q, row, aggregation);
    loss += temperature * static_cast<double>(work->sample.logp()[row]) - static_cast<double>(value);
    // d(aggregate) / d(values): equal critics share
    const auto counts = [&](const float* of_critic) {
      return aggregation == CriticAggregation::mean || of_critic[row] == value;
    };
    const auto sharing = static_cast<double>(std::count_if(q.begin(), q.end(), counts));
    for (std::size_t i = 0; i < q.size(); ++i)
      work->d_values[i].data_ptr<float>()[row] = counts(q[i]) ? static_cast<float>(-share / sharing) : 0.0f;
  }
  loss /= static_cast<double>(rows);
  const double mean_logp = mean_of(work->sample.logp().data(), rows);
  MicroResult result{loss,
                     {{"sac/actor_loss", loss},
                      {"sac/alpha", temperature},
                      {"critic/q_pi", mean_of(work->value.data(), rows)},
                      {"actor/entropy", -mean_logp}}};
  for (std::size_t i = 0; i < q.size(); ++i)
    result.metrics["critic/q_value_" + std::to_string(i)] = mean_of(q[i], rows);

  if (!gradients[SacModel::kActor].tensors().empty()) {
    side_by_side(critics, *work->critics.front(), [&](std::int64_t part) {
      const auto i = static_cast<std::size_t>(part);
      work->critics[i]->backward(params[SacModel::kCritic], work->input, work->d_values[i], nullptr,
                                 &work->d_inputs[i]);
    });
    // the first takes the sum of all critics
    float* const d_input = work->d_inputs.front().data_ptr<float>();
    for (std::size_t i = 1; i < q.size(); ++i) {
      const float* const other = work->d_inputs[i].const_data_ptr<float>();
      for (std::int64_t n = 0; n < rows * width; ++n) d_input[n] += other[n];
    }
    work->sample.backward(noise.const_data_ptr<float>(), d_input + state.size(1), width,
                          static_cast<float>(share * temperature), work->d_outputs.data_ptr<float>());
    work->actor.backward(params[SacModel::kActor], actor_state, work->d_outputs, &gradients[SacModel::kActor]);
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
