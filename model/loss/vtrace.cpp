#include "model/loss/vtrace.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <vector>

namespace troupe::model {

VtraceTargets vtrace(const at::Tensor& rewards_SB, const at::Tensor& values_S1B, const at::Tensor& dones_S1B,
                     const at::Tensor& log_ratio_SB, const VtraceOptions& options) {
  const auto steps = rewards_SB.size(0);
  const std::vector<std::int64_t> with_last{steps + 1, rewards_SB.size(1)};
  TORCH_CHECK(rewards_SB.dim() == 2 && log_ratio_SB.sizes() == rewards_SB.sizes() && values_S1B.sizes() == with_last &&
                  dones_S1B.sizes() == with_last,
              "rewards ", rewards_SB.sizes(), ", log ratios ", log_ratio_SB.sizes(), ", values ", values_S1B.sizes(),
              " and flags ", dones_S1B.sizes(), " do not fit: values and flags have one row more");
  const c10::NoGradGuard no_grad;
  const auto type = rewards_SB.scalar_type();
  const auto ratio = log_ratio_SB.to(type).clamp(-20, 20).exp();
  const auto rho = ratio.clamp_max(options.rho_bar), trace = options.lambda * ratio.clamp_max(options.c_bar);
  const auto discount = options.gamma * (1 - dones_S1B.narrow(0, 1, steps).to(type));
  const auto values = values_S1B.to(type);
  const auto here = values.narrow(0, 0, steps), next = values.narrow(0, 1, steps);
  const auto delta = rho * (rewards_SB + discount * next - here);
  const auto carry = discount * trace;
  const auto targets = values.clone();
  auto excess = at::zeros_like(values[0]);  // vs - V of the next step
  for (auto s = steps - 1; s >= 0; --s) {
    excess = delta[s] + carry[s] * excess;
    targets[s].add_(excess);
  }
  return {targets.narrow(0, 0, steps), rho * (rewards_SB + discount * targets.narrow(0, 1, steps) - here)};
}

}  // namespace troupe::model
