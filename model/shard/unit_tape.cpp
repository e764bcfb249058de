#include "model/shard/unit_tape.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>

namespace troupe {

UnitTape::UnitTape(const Network& network, const Batch& batch, double weight, bool recorded)
    : network_(network), batch_(batch), weight_(weight), recorded_(recorded) {}

bool UnitTape::is_differentiated(const at::Tensor& tensor) const {
  return tensor.defined() && tensor.is_floating_point();
}

UnitTape::Leaves UnitTape::make_leaves(const at::Tensor& x) const {
  Leaves leaves;
  const auto leaf = [&](const at::Tensor& value) {
    if (!is_differentiated(value)) return value;
    auto copy = value.detach();
    copy.requires_grad_(true);
    leaves.inputs.push_back(copy);
    return copy;
  };
  leaves.carry.x = leaf(x);
  for (const auto& c : conditioning_) leaves.carry.conditioning.push_back(leaf(c));
  return leaves;
}

void UnitTape::forward(int unit, const ParamView& params) {
  const bool is_last = unit == last_unit();
  if (is_last && recorded_) {
    const at::AutoGradMode recording(true);
    epilogue_leaves_ = make_leaves(x_.back());
    outputs_ = network_.epilogue(params, epilogue_leaves_.carry, batch_);
    return;
  }
  const at::NoGradGuard no_grad;
  if (unit == 0) {
    auto carry = network_.prologue(params, batch_);
    x_.push_back(carry.x.detach());
    for (const auto& c : carry.conditioning) conditioning_.push_back(c.defined() ? c.detach() : c);
    conditioning_gradients_.resize(conditioning_.size());
    return;
  }
  const Carry carry{x_.back(), conditioning_};
  if (is_last) {
    outputs_ = network_.epilogue(params, carry, batch_);
    return;
  }
  auto next = network_.block(unit - 1, params, carry, batch_).detach();
  if (recorded_)
    x_.push_back(std::move(next));
  else
    x_.back() = std::move(next);
}

void UnitTape::backward(int unit, const ParamView& params, const ParamView& gradients) {
  const at::AutoGradMode recording(true);
  if (unit == last_unit()) {
    const auto& loss = outputs_->loss;
    differentiate({loss}, {at::full({}, weight_, loss.options())}, epilogue_leaves_, params, gradients);
    epilogue_leaves_ = {};
    outputs_->loss = loss.detach();
    return;
  }
  if (unit == 0) return backward_prologue(params, gradients);
  x_.pop_back();  // the output of this unit; its gradient has arrived
  const auto leaves = make_leaves(x_.back());
  const auto y = network_.block(unit - 1, params, leaves.carry, batch_);
  differentiate({y}, {x_gradient_}, leaves, params, gradients);
}

void UnitTape::backward_prologue(const ParamView& params, const ParamView& gradients) {
  const auto carry = network_.prologue(params, batch_);
  std::vector<at::Tensor> outputs{carry.x}, seeds{x_gradient_};
  for (std::size_t i = 0; i < carry.conditioning.size(); ++i) {
    if (!conditioning_gradients_[i].defined()) continue;
    outputs.push_back(carry.conditioning[i]);
    seeds.push_back(conditioning_gradients_[i].to(carry.conditioning[i].scalar_type()));
  }
  differentiate(outputs, seeds, {}, params, gradients);
}

void UnitTape::differentiate(const std::vector<at::Tensor>& outputs, const std::vector<at::Tensor>& seeds,
                             const Leaves& leaves, const ParamView& params, const ParamView& gradients) {
  // outputs that depend on nothing here (a prologue that passes data through) have no gradient to ask for
  std::vector<at::Tensor> from, with;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i].requires_grad() || !seeds[i].defined()) continue;
    from.push_back(outputs[i]);
    with.push_back(seeds[i]);
  }
  auto inputs = leaves.inputs;
  for (const auto& [name, param] : params.tensors()) inputs.push_back(param);
  std::vector<at::Tensor> found(inputs.size());
  if (!from.empty() && !inputs.empty()) {
    found = torch::autograd::grad(from, inputs, with, /*retain_graph=*/false, /*create_graph=*/false,
                                  /*allow_unused=*/true);
  }

  const at::NoGradGuard no_grad;
  std::size_t next = 0;
  if (is_differentiated(leaves.carry.x)) x_gradient_ = found[next++];
  for (std::size_t i = 0; i < leaves.carry.conditioning.size(); ++i) {
    if (!is_differentiated(leaves.carry.conditioning[i])) continue;
    const auto& gradient = found[next++];
    if (!gradient.defined()) continue;
    auto& sum = conditioning_gradients_[i];
    sum = sum.defined() ? sum + gradient.to(at::kFloat) : gradient.to(at::kFloat);
  }
  for (const auto& [name, param] : params.tensors()) {
    const auto& gradient = found[next++];
    const auto& target = gradients[name];
    if (gradient.defined())
      target.copy_(gradient);
    else
      target.zero_();
  }
}

MicroResult UnitTape::result() const {
  MicroResult result{outputs_->loss.item<double>(), {}};
  for (const auto& [name, value] : outputs_->metrics) result.metrics[name] = value.item<double>();
  return result;
}

}  // namespace troupe
