#include "model/loss/gae.h"

#include <ATen/ATen.h>

#include <cmath>
#include <vector>

#include "model/loss/rollout_layout.h"

namespace troupe::model {

namespace {

/// The recursion over contiguous arrays [steps, envs]; one pass, because a rollout has thousands of short rows.
template <class T>
void scan(const T* rewards, const T* values, const T* dones, T* advantages, std::int64_t steps, std::int64_t envs,
          T gamma, T lambda) {
  for (std::int64_t s = steps - 1; s >= 0; --s) {
    for (std::int64_t b = 0; b < envs; ++b) {
      const auto here = s * envs + b, next = here + envs;
      const T goes_on = gamma * (1 - dones[next]);
      const T delta = rewards[here] + goes_on * values[next] - values[here];
      const T later = s + 1 < steps ? advantages[next] : T(0);
      advantages[here] = delta + goes_on * lambda * later;
    }
  }
}

at::Tensor contiguous(const at::Tensor& x, at::ScalarType type) { return x.detach().to(at::kCPU, type).contiguous(); }

}  // namespace

Advantages gae(const at::Tensor& rewards_SB, const at::Tensor& values_S1B, const at::Tensor& dones_S1B, double gamma,
               double lambda) {
  const auto steps = rewards_SB.size(0), envs = rewards_SB.size(1);
  const std::vector<std::int64_t> with_last{steps + 1, envs};
  TORCH_CHECK(rewards_SB.dim() == 2 && values_S1B.sizes() == with_last && dones_S1B.sizes() == with_last, "rewards ",
              rewards_SB.sizes(), ", values ", values_S1B.sizes(), " and flags ", dones_S1B.sizes(),
              " do not fit: values and flags have one row more");
  const auto type = rewards_SB.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  const auto rewards = contiguous(rewards_SB, type), values = contiguous(values_S1B, type),
             dones = contiguous(dones_S1B, type);
  const auto advantages = at::empty_like(rewards);
  if (type == at::kDouble) {
    scan<double>(rewards.data_ptr<double>(), values.data_ptr<double>(), dones.data_ptr<double>(),
                 advantages.data_ptr<double>(), steps, envs, gamma, lambda);
  } else {
    scan<float>(rewards.data_ptr<float>(), values.data_ptr<float>(), dones.data_ptr<float>(),
                advantages.data_ptr<float>(), steps, envs, static_cast<float>(gamma), static_cast<float>(lambda));
  }
  const auto returns = advantages + values.narrow(0, 0, steps);
  return {advantages.to(rewards_SB.device()), returns.to(rewards_SB.device())};
}

at::Tensor chunk_rewards(const at::Tensor& rewards_TBK, double discount) {
  if (discount == 1.0) return rewards_TBK.sum(2);
  const auto powers = at::pow(
      discount, at::arange(rewards_TBK.size(2), at::TensorOptions().dtype(at::kDouble).device(rewards_TBK.device())));
  return (rewards_TBK * powers.to(rewards_TBK.scalar_type())).sum(2);
}

Advantages rollout_gae(const at::Tensor& rewards_TBK, const at::Tensor& values_T1BV, const at::Tensor& dones_T1BK,
                       const GaeOptions& options) {
  TORCH_CHECK(rewards_TBK.dim() == 3, "rewards of shape ", rewards_TBK.sizes(),
              " are not [calls, environments, actions]");
  const auto chunk = rewards_TBK.size(2);
  if (options.per_action) {
    TORCH_CHECK(values_T1BV.dim() == 3 && values_T1BV.size(2) == chunk, "values of shape ", values_T1BV.sizes(),
                " are not one per action; ", "action-level rewards need a value head with ", chunk, " outputs");
    const auto flat = gae(flatten_steps(rewards_TBK), flatten_values(values_T1BV), flatten_flags(dones_T1BK),
                          options.gamma, options.lambda);
    return {unflatten_steps(flat.advantages, chunk), unflatten_steps(flat.returns, chunk)};
  }
  const auto rewards = chunk_rewards(rewards_TBK, options.semi_mdp ? options.gamma : 1.0);
  const double gamma = options.semi_mdp ? std::pow(options.gamma, static_cast<double>(chunk)) : options.gamma;
  const auto flat = gae(rewards, values_T1BV.select(2, 0), dones_T1BK.to(at::kBool).any(2), gamma, options.lambda);
  return {flat.advantages.unsqueeze(2), flat.returns.unsqueeze(2)};
}

at::Tensor add_bootstrap(const at::Tensor& rewards_TBK, const at::Tensor& terminated_TBK,
                         const at::Tensor& truncated_TBK, const at::Tensor& final_values_TB1, double gamma,
                         Bootstrap bootstrap, bool parity) {
  if (bootstrap == Bootstrap::never) return rewards_TBK;
  const auto terminated = terminated_TBK.to(at::kBool), truncated = truncated_TBK.to(at::kBool);
  const auto done = terminated.logical_or(truncated);
  const auto bonus = (gamma * final_values_TB1).to(rewards_TBK.scalar_type());
  if (parity) {
    const auto ends = (bootstrap == Bootstrap::always ? done : truncated).any(2);
    auto out = rewards_TBK.clone();
    out.select(2, out.size(2) - 1).add_(at::where(ends, bonus.select(2, 0), at::zeros_like(bonus.select(2, 0))));
    return out;
  }
  const auto is_first = done.logical_and(done.cumsum(2).eq(1));
  const auto ends = bootstrap == Bootstrap::always ? is_first : is_first.logical_and(terminated.logical_not());
  return rewards_TBK + at::where(ends, bonus.expand_as(rewards_TBK), at::zeros_like(rewards_TBK));
}

}  // namespace troupe::model
