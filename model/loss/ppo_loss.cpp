#include "model/loss/ppo_loss.h"

#include <ATen/ATen.h>

#include <limits>

namespace troupe::model {

PpoEntries ppo_entries(const at::Tensor& logp, const at::Tensor& old_logp, const at::Tensor& advantage,
                       const at::Tensor& mask, const PpoClip& clip) {
  const auto kept = mask.to(at::kBool);
  const auto log_ratio = at::where(kept, (logp - old_logp).clamp(clip.log_ratio_min, clip.log_ratio_max), 0.0);
  const auto ratio = at::where(kept, log_ratio.exp(), 0.0);
  const double lower = clip.reciprocal ? 1.0 / (1.0 + clip.low) : 1.0 - clip.low;
  const auto clipped = ratio.clamp(lower, 1.0 + clip.high);
  const auto free_loss = -advantage * ratio, clipped_loss = -advantage * clipped;
  PpoEntries e;
  e.loss = at::maximum(free_loss, clipped_loss);
  e.log_ratio = log_ratio.detach();
  e.ratio = ratio.detach();
  e.clipped_ratio = clipped.detach();
  e.is_clipped = free_loss.detach() < clipped_loss.detach();
  if (clip.dual > 0) {
    const auto bound = clip.dual * advantage.abs();
    e.is_dual_clipped = (bound < e.loss.detach()).logical_and(kept);
    e.loss = at::minimum(e.loss, bound);
  } else {
    e.is_dual_clipped = at::zeros_like(e.is_clipped);
  }
  return e;
}

at::Tensor proximal_logp(const at::Tensor& logp, const at::Tensor& behaviour_logp, const at::Tensor& behaviour_version,
                         const at::Tensor& trained_version) {
  const auto behind = trained_version.to(logp.scalar_type()) - behaviour_version.to(logp.scalar_type());
  // behind >= 1 in the branch that is taken, so the clamp changes nothing there and keeps the other one finite
  const auto share = ((behind - 1) / behind.clamp_min(1)).clamp(0, 1);
  const auto alpha = at::where(behind.gt(0).logical_and(behaviour_version.ge(0)), share, 0.0);
  const auto old = behaviour_logp.detach();
  return old + alpha * (logp.detach() - old);
}

DecoupledEntries decoupled_entries(const at::Tensor& logp, const at::Tensor& behaviour_logp, const at::Tensor& proximal,
                                   const at::Tensor& advantage, const at::Tensor& mask, const PpoClip& clip,
                                   std::optional<double> weight_max) {
  DecoupledEntries d;
  d.ppo = ppo_entries(logp, proximal, advantage, mask, clip);
  const auto log_weight = (proximal - behaviour_logp).detach().clamp(-20, 20);
  d.weight = log_weight.exp();
  d.is_kept = d.weight.le(weight_max.value_or(std::numeric_limits<double>::infinity())).logical_and(mask.to(at::kBool));
  d.behaviour_log_ratio = at::where(d.is_kept, log_weight, 0.0);
  d.ppo.loss = at::where(d.is_kept, d.ppo.loss * d.weight, 0.0);
  return d;
}

at::Tensor huber(const at::Tensor& error, double delta) {
  const auto size = error.abs();
  return at::where(size < delta, 0.5 * error.square(), delta * (size - 0.5 * delta));
}

at::Tensor value_entries(const at::Tensor& value, const at::Tensor& old_value, const at::Tensor& returns,
                         const ValueLossOptions& options) {
  const auto judge = [&options](const at::Tensor& error) {
    return options.is_huber ? huber(error, options.huber_delta) : 0.5 * error.square();
  };
  auto free_error = judge(returns - value);
  if (options.clip <= 0) return free_error;
  const auto clipped = old_value + (value - old_value).clamp(-options.clip, options.clip);
  return at::maximum(free_error, judge(returns - clipped));
}

}  // namespace troupe::model
