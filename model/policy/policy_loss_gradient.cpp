#include "model/policy/policy_loss_gradient.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>

#include "model/policy/ppo_gradient.h"

namespace troupe::model {
PolicyLossGradient::PolicyLossGradient(const PolicyGradientOptions& options, std::int64_t rows, std::int64_t logp_width,
                                       std::int64_t value_width)
    : options_(options) {
  gradients_.logp = at::empty({rows, logp_width}, at::kFloat);
  gradients_.entropy = at::empty({rows, logp_width}, at::kFloat);
  if (value_width > 0) gradients_.value = at::empty({rows, value_width}, at::kFloat);
}

MicroResult PolicyLossGradient::run(const PolicyGradientInputs& inputs, double weight) {
  auto in = inputs;
  make_contiguous(in);
  if (!has_ppo_gradient(in, options_)) return run_by_autograd(in, weight);
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
  const auto found =
      torch::autograd::grad({loss.loss}, leaves, {at::full({}, weight, loss.loss.options())}, /*retain_graph=*/false,
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

}  // namespace troupe::model
