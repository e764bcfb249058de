#include "model/policy/policy_loss_gradient.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>

#include <utility>

namespace troupe::model {
PolicyLossGradient::PolicyLossGradient(const PolicyGradientOptions& options, std::int64_t rows, std::int64_t logp_width,
                                       std::int64_t value_width)
    : options_(options), ppo_(options) {
  gradients_.logp = at::empty({rows, logp_width}, at::kFloat);
  gradients_.entropy = at::empty({rows, logp_width}, at::kFloat);
  if (value_width > 0) gradients_.value = at::empty({rows, value_width}, at::kFloat);
}

void PolicyLossGradient::begin(PolicyGradientInputs inputs, double weight) {
  make_contiguous(inputs);
  inputs_ = std::move(inputs);
  inputs_.logp = inputs_.entropy = inputs_.value = at::Tensor();
  weight_ = weight;
  is_ppo_ = ppo_.begin(inputs_, weight);
  has_actor_ = has_critic_ = false;
}

bool PolicyLossGradient::actor(const at::Tensor& logp, const at::Tensor& entropy) {
  inputs_.logp = logp;
  inputs_.entropy = entropy;
  return has_actor_ = is_ppo_ && ppo_.actor(logp, entropy, gradients_.logp, gradients_.entropy);
}

bool PolicyLossGradient::critic(const at::Tensor& value) {
  inputs_.value = value;
  return has_critic_ = is_ppo_ && ppo_.critic(value, gradients_.value);
}

std::optional<MicroResult> PolicyLossGradient::result() const {
  const bool is_whole = has_actor_ && (has_critic_ || !inputs_.value.defined());
  return is_whole ? std::optional(ppo_.result()) : std::nullopt;
}

MicroResult PolicyLossGradient::by_autograd() {
  const at::AutoGradMode recording(true);
  auto in = inputs_;
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
      torch::autograd::grad({loss.loss}, leaves, {at::full({}, weight_, loss.loss.options())}, /*retain_graph=*/false,
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
