#include "model/loss/grpo.h"

#include <ATen/ATen.h>

#include <vector>

#include "model/loss/gae.h"
#include "model/loss/rollout_layout.h"

namespace troupe::model {

namespace {

constexpr double kGroupEpsilon = 1e-6;

/// Scores at the level of the mask's last dimension.
at::Tensor rollout_scores(const at::Tensor& rewards_TBK, const at::Tensor& dones_T1BK, const at::Tensor& mask) {
  if (mask.size(2) == rewards_TBK.size(2))
    return first_episode_scores(flatten_steps(rewards_TBK), flatten_flags(dones_T1BK));
  return first_episode_scores(chunk_rewards(rewards_TBK), dones_T1BK.to(at::kBool).any(2));
}

void check_groups(std::int64_t environments, std::int64_t group_size) {
  TORCH_CHECK(group_size > 0 && environments % group_size == 0, environments,
              " environments cannot be split into groups of ", group_size);
}

}  // namespace

at::Tensor first_episode_scores(const at::Tensor& rewards_SB, const at::Tensor& dones_S1B) {
  const auto dones = dones_S1B.to(rewards_SB.scalar_type());
  auto score = at::zeros({rewards_SB.size(1)}, rewards_SB.options());
  for (auto s = rewards_SB.size(0) - 1; s >= 0; --s) score = score * (1 - dones[s + 1]) + rewards_SB[s];
  return score;
}

at::Tensor group_relative(const at::Tensor& scores_B, std::int64_t group_size) {
  check_groups(scores_B.size(0), group_size);
  if (group_size < 2) return at::zeros_like(scores_B);
  const auto x = scores_B.reshape({-1, group_size});
  const auto spread = x.std(at::IntArrayRef({1}), /*unbiased=*/true, /*keepdim=*/true) + kGroupEpsilon;
  return ((x - x.mean(1, /*keepdim=*/true)) / spread).reshape({-1});
}

at::Tensor grpo_advantages(const at::Tensor& rewards_TBK, const at::Tensor& dones_T1BK, const at::Tensor& mask,
                           std::int64_t group_size) {
  const auto advantage = group_relative(rollout_scores(rewards_TBK, dones_T1BK, mask), group_size);
  return advantage.reshape({1, -1, 1}) * mask.to(advantage.scalar_type());
}

at::Tensor kept_groups(const at::Tensor& rewards_TBK, const at::Tensor& mask, std::int64_t group_size, double low,
                       double high) {
  check_groups(rewards_TBK.size(1), group_size);
  const auto earned = mask.defined() ? rewards_TBK * mask.to(rewards_TBK.scalar_type()) : rewards_TBK;
  const auto mean = earned.sum(std::vector<std::int64_t>{0, 2}).reshape({-1, group_size}).mean(1);
  return mean.ge(low).logical_and(mean.le(high)).repeat_interleave(group_size);
}

}  // namespace troupe::model
