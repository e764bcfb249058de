#include "model/policy/ppo_loss_op.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include "model/policy/ppo_gradient.h"

namespace troupe::model {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// The loss as a number that was found elsewhere, with its gradient.
struct FoundLoss : torch::autograd::Function<FoundLoss> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& stream, const at::Tensor& gradient, double loss) {
    ctx->save_for_backward({gradient});
    return at::scalar_tensor(loss, stream.options());
  }

  static variable_list backward(AutogradContext* ctx, variable_list gradients) {
    return {ctx->get_saved_variables()[0] * gradients[0], {}, {}};
  }
};

}  // namespace

PolicyGradientLoss ppo_loss_op(const at::Tensor& stream, std::int64_t logp_width, std::int64_t value_width,
                               PolicyGradientInputs inputs, const PolicyGradientOptions& options) {
  const auto cut = [&](const at::Tensor& x, PolicyGradientInputs& in) {
    in.logp = x.narrow(1, 0, logp_width);
    in.entropy = x.narrow(1, logp_width, logp_width);
    if (value_width > 0) in.value = x.narrow(1, 2 * logp_width, value_width);
  };
  auto plain = inputs;
  cut(stream.detach(), plain);
  make_contiguous(plain);
  PpoGradient gradient(options);
  const auto like = [](const at::Tensor& x) { return x.defined() ? at::empty_like(x) : at::Tensor(); };
  const at::Tensor d_logp = like(plain.logp), d_entropy = like(plain.entropy), d_value = like(plain.value);
  if (!gradient.begin(plain, 1.0) || !gradient.actor(plain.logp, plain.entropy, d_logp, d_entropy) ||
      (plain.value.defined() && !gradient.critic(plain.value, d_value))) {
    cut(stream, inputs);
    return policy_gradient_loss(inputs, options);
  }
  const MicroResult found = gradient.result();
  std::vector<at::Tensor> parts{d_logp, d_entropy};
  if (d_value.defined()) parts.push_back(d_value);
  PolicyGradientLoss result{FoundLoss::apply(stream, at::cat(parts, 1), found.loss), {}};
  for (const auto& [name, value] : found.metrics) result.metrics[name] = at::scalar_tensor(value, at::kFloat);
  return result;
}

}  // namespace troupe::model
