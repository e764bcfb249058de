#include "bench/model/plain_trainer.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>

#include "bench/model/checkpoint.h"
#include "model/shard/flat_layout.h"
#include "model/shard/init.h"

namespace troupe::bench {
namespace {

using torch::autograd::variable_list;

/// The parameters of a unit as a list, and back.
variable_list list_of(const ParamView& view) {
  variable_list list;
  for (const auto& [name, tensor] : view.tensors()) list.push_back(tensor);
  return list;
}

ParamView view_of(const ParamView& names, const variable_list& list, std::size_t begin) {
  ParamView view;
  for (const auto& [name, tensor] : names.tensors()) view.set(name, list[begin++]);
  return view;
}

}  // namespace

PlainTrainer::PlainTrainer(std::shared_ptr<const Network> network, std::uint64_t seed, const AdamWOptions& adamw,
                           double clip_grad_norm)
    : network_(std::move(network)), adamw_(adamw), clip_grad_norm_(clip_grad_norm) {
  for (const auto& unit : network_->units()) {
    const auto layout = make_flat_layout(unit.params);
    const auto flat = at::empty({layout.numel}, at::kFloat);
    fill_initial(unit, layout, seed, 0, {flat.data_ptr<float>(), static_cast<std::size_t>(layout.numel)});
    auto& view = units_.emplace_back();
    for (const auto& entry : layout.entries) {
      auto param = flat.narrow(0, entry.offset, entry.numel).view(entry.shape).clone();
      param.requires_grad_(true);
      view.set(entry.name, param);
      params_.push_back(param);
      m_.push_back(at::zeros(entry.shape));
      v_.push_back(at::zeros(entry.shape));
      updates_.push_back(at::zeros({}));
    }
  }
}

at::Tensor PlainTrainer::loss(const Batch& batch) const {
  const Segment prologue = [&](const variable_list& inputs) {
    auto carry = network_->prologue(view_of(units_.front(), inputs, 0), batch);
    variable_list outputs{carry.x};
    outputs.insert(outputs.end(), carry.conditioning.begin(), carry.conditioning.end());
    return outputs;
  };
  const auto started = Checkpoint::apply(prologue, at::TensorList(list_of(units_.front())));
  Carry carry{started[0], {started.begin() + 1, started.end()}};
  const std::size_t num_carried = started.size();
  for (std::size_t u = 1; u + 1 < units_.size(); ++u) {
    const Segment block = [this, &batch, u, num_carried](const variable_list& inputs) -> variable_list {
      const Carry own{inputs[0], {inputs.begin() + 1, inputs.begin() + static_cast<std::ptrdiff_t>(num_carried)}};
      return {network_->block(static_cast<std::int64_t>(u) - 1, view_of(units_[u], inputs, num_carried), own, batch)};
    };
    variable_list inputs{carry.x};
    inputs.insert(inputs.end(), carry.conditioning.begin(), carry.conditioning.end());
    for (auto& param : list_of(units_[u])) inputs.push_back(std::move(param));
    carry.x = Checkpoint::apply(block, at::TensorList(inputs))[0];
  }
  return network_->epilogue(units_.back(), carry, batch).loss;
}

void PlainTrainer::update(double lr) {
  const at::NoGradGuard no_grad;
  // a parameter that the loss does not reach has no gradient and is left alone, as LibTorch's optimizers do
  std::vector<at::Tensor> params, grads, m, v, updates;
  for (std::size_t i = 0; i < params_.size(); ++i) {
    if (!params_[i].grad().defined()) continue;
    params.push_back(params_[i]);
    grads.push_back(params_[i].grad());
    m.push_back(m_[i]);
    v.push_back(v_[i]);
    updates.push_back(updates_[i]);
  }
  const auto norm = at::stack(at::_foreach_norm(grads, 2)).norm().item<double>();
  if (clip_grad_norm_ > 0 && norm > clip_grad_norm_) at::_foreach_mul_(grads, clip_grad_norm_ / (norm + 1e-6));
  at::_foreach_add_(updates, 1);
  at::_fused_adamw_(params, grads, m, v, {}, updates, lr, adamw_.beta1, adamw_.beta2, adamw_.weight_decay, adamw_.eps,
                    false, false);
}

double PlainTrainer::step(const Batch& batch, double lr) {
  for (auto& param : params_) param.mutable_grad().reset();
  const auto value = loss(batch);
  torch::autograd::backward({value});
  update(lr);
  return value.item<double>();
}

}  // namespace troupe::bench
