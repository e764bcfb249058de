#include "model/loss/dppo_loss.h"

#include <ATen/ATen.h>

#include <cmath>

#include "model/loss/advantage_norm.h"

namespace troupe::model {

at::Tensor dppo_discounts(std::int64_t steps, double denoising_discount) {
  return at::pow(denoising_discount, at::arange(steps - 1, -1, -1, at::TensorOptions().dtype(at::kDouble)));
}

at::Tensor dppo_clips(std::int64_t steps, const DppoOptions& o) {
  if (steps == 1) return at::full({1}, o.clip, at::TensorOptions().dtype(at::kDouble));
  const auto place = at::arange(steps, at::TensorOptions().dtype(at::kDouble)) / static_cast<double>(steps - 1);
  return o.clip_base + (o.clip - o.clip_base) * (o.clip_rate * place).expm1() / std::expm1(o.clip_rate);
}

at::Tensor dppo_ratios(const at::Tensor& logp_NSHD, const at::Tensor& old_logp_NSHD, const DppoOptions& o) {
  TORCH_CHECK(logp_NSHD.dim() == 4 && logp_NSHD.sizes() == old_logp_NSHD.sizes(), "log-probabilities ",
              logp_NSHD.sizes(), " and ", old_logp_NSHD.sizes(), " are not [samples, steps, horizon, dimensions]");
  const auto mean = [&o](const at::Tensor& x) { return x.clamp(o.logp_min, o.logp_max).mean(at::IntArrayRef{2, 3}); };
  return (mean(logp_NSHD) - mean(old_logp_NSHD)).exp();
}

at::Tensor dppo_loss(const at::Tensor& logp_NSHD, const at::Tensor& old_logp_NSHD, const at::Tensor& advantage_N,
                     const DppoOptions& o) {
  const auto ratio = dppo_ratios(logp_NSHD, old_logp_NSHD, o);
  const auto steps = ratio.size(1);
  const auto normalised = normalise(advantage_N, advantage_moments(advantage_N, {}), o.advantage_epsilon).detach();
  const auto advantage =
      normalised.unsqueeze(1) * dppo_discounts(steps, o.denoising_discount).to(ratio.options().requires_grad(false));
  const auto eps = dppo_clips(steps, o).to(ratio.options().requires_grad(false));
  const auto clipped = at::minimum(at::maximum(ratio, 1 - eps), 1 + eps);
  return at::maximum(-advantage * ratio, -advantage * clipped).mean();
}

}  // namespace troupe::model
