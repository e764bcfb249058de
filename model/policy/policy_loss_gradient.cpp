#include "model/policy/policy_loss_gradient.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>

#include "model/policy/ppo_gradient.h"

namespace troupe {
namespace {

bool is_plain(const at::Tensor& x) {
  return !x.defined() || (x.is_cpu() && x.scalar_type() == at::kFloat && x.is_contiguous() && x.dim() == 2);
}

/// Every number is finite, or absent. A product with zero is NaN for what is not, and the sum keeps it.
bool is_finite(const at::Tensor& x) {
  if (!x.defined()) return true;
  const float* data = x.const_data_ptr<float>();
  float sum = 0;
  for (std::int64_t i = 0, n = x.numel(); i < n; ++i) sum += data[i] * 0.0f;
  return sum == 0.0f;
}

}  // namespace

PolicyLossGradient::PolicyLossGradient(const PolicyGradientOptions& options, std::int64_t rows, std::int64_t logp_width,
                                       std::int64_t value_width)
    : options_(options) {
  gradients_.logp = at::empty({rows, logp_width}, at::kFloat);
  gradients_.entropy = at::empty({rows, logp_width}, at::kFloat);
  if (value_width > 0) gradients_.value = at::empty({rows, value_width}, at::kFloat);
}

bool PolicyLossGradient::is_usual(const PolicyGradientInputs& in) const {
  if (options_.actor != ActorLoss::ppo || options_.parity || in.reference_logp.defined()) return false;
  for (const auto* x : {&in.logp, &in.entropy, &in.value, &in.old_logp, &in.advantage, &in.returns, &in.old_value, &in.valid_steps}) {
    if (!is_plain(*x)) return false;
  }
  for (const auto* x : {&in.logp, &in.entropy, &in.value, &in.old_logp, &in.advantage, &in.returns, &in.old_value}) {
    if (!is_finite(*x)) return false;
  }
  return !in.mask.defined() || (in.mask.is_cpu() && in.mask.scalar_type() == at::kBool && in.mask.is_contiguous());
}

MicroResult PolicyLossGradient::run(const PolicyGradientInputs& inputs, double weight) {
  // a minibatch may be cut from larger tensors: what is contiguous already stays as it is
  auto in = inputs;
  for (auto* x : {&in.old_logp, &in.advantage, &in.returns, &in.old_value, &in.valid_steps, &in.mask}) {
    if (x->defined()) *x = x->contiguous();
  }
  if (!is_usual(in)) return run_by_autograd(in, weight);
  return ppo_gradient(in, options_, weight, {gradients_.logp, gradients_.entropy, gradients_.value});
}

MicroResult PolicyLossGradient::run_by_autograd(const PolicyGradientInputs& inputs, double weight) {
  const at::AutoGradMode recording(true);
  auto in = inputs;
  std::vector<at::Tensor> leaves, targets;
  const auto make_leaf = [&](at::Tensor& x, const at::Tensor& target) {
    if (!x.defined()) return;
    x = x.detach();
    x.requires_grad_(true);
    leaves.push_back(x);
    targets.push_back(target);
  };
  make_leaf(in.logp, gradients_.logp);
  make_leaf(in.entropy, gradients_.entropy);
  make_leaf(in.value, gradients_.value);
  const auto loss = policy_gradient_loss(in, options_);
  const auto found = torch::autograd::grad({loss.loss}, leaves, {at::full({}, weight, loss.loss.options())}, /*retain_graph=*/false,
                                           /*create_graph=*/false, /*allow_unused=*/true);
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    if (found[i].defined()) {
      targets[i].copy_(found[i]);
    } else {
      targets[i].zero_();
    }
  }
  MicroResult result{loss.loss.item<double>(), {}};
  for (const auto& [name, value] : loss.metrics) result.metrics[name] = value.item<double>();
  return result;
}

}  // namespace troupe
