#include "bench/model/plain_trainer.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include <functional>

#include "model/shard/flat_layout.h"
#include "model/shard/init.h"

namespace troupe::bench {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using Segment = std::function<variable_list(const variable_list&)>;

/// Carries a segment from forward to backward.
struct HeldSegment final : torch::CustomClassHolder {
  explicit HeldSegment(Segment s) : run(std::move(s)) {}
  Segment run;
};

/// A segment whose inputs alone are kept; backward runs it again, recorded, and differentiates it.
struct Checkpoint : torch::autograd::Function<Checkpoint> {
  static variable_list forward(AutogradContext* context, const Segment& segment, at::TensorList inputs) {
    const at::NoGradGuard no_grad;
    context->save_for_backward(inputs.vec());
    context->saved_data["segment"] = c10::IValue::make_capsule(c10::make_intrusive<HeldSegment>(segment));
    return segment(inputs.vec());
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const at::AutoGradMode recording(true);
    variable_list inputs, wanted;
    for (const auto& saved : context->get_saved_variables()) {
      auto input = saved.detach();
      input.requires_grad_(saved.requires_grad());
      if (saved.requires_grad()) wanted.push_back(input);
      inputs.push_back(std::move(input));
    }
    const auto held = c10::static_intrusive_pointer_cast<HeldSegment>(context->saved_data["segment"].toCapsule());
    variable_list from, with;
    const auto outputs = held->run(inputs);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      if (!outputs[i].requires_grad() || !gradients[i].defined()) continue;
      from.push_back(outputs[i]);
      with.push_back(gradients[i]);
    }
    const auto found = torch::autograd::grad(from, wanted, with, std::nullopt, false, /*allow_unused=*/true);
    variable_list result(1);  // the segment itself
    std::size_t next = 0;
    for (const auto& input : inputs) result.push_back(input.requires_grad() ? found[next++] : at::Tensor());
    return result;
  }
};

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

PlainTrainer::PlainTrainer(std::shared_ptr<const Network> network, std::uint64_t seed, const AdamWOptions& adamw, double clip_grad_norm)
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
  at::_fused_adamw_(params, grads, m, v, {}, updates, lr, adamw_.beta1, adamw_.beta2, adamw_.weight_decay, adamw_.eps, false, false);
}

double PlainTrainer::step(const Batch& batch, double lr) {
  for (auto& param : params_) param.mutable_grad().reset();
  const auto value = loss(batch);
  torch::autograd::backward({value});
  update(lr);
  return value.item<double>();
}

}  // namespace troupe::bench
