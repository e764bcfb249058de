#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace troupe::model {

// Fine-tuning of the last K' denoising steps as an inner decision process (DPPO, arXiv:2409.00588).

struct DppoOptions {
  double denoising_discount = 0.99;  ///< g_d
  double clip = 0.01, clip_base = 0.001, clip_rate = 3;
  double logp_min = -5, logp_max = 2;
  double advantage_epsilon = 1e-8;
};

/// g_d^(K'-1-i), i = 0 the noisiest step. f64 [steps].
at::Tensor dppo_discounts(std::int64_t steps, double denoising_discount);
/// base + (clip - base) (exp(rate i/(K'-1)) - 1) / (exp(rate) - 1). f64 [steps]; one step has `clip`.
at::Tensor dppo_clips(std::int64_t steps, const DppoOptions& options);
/// exp(mean over (horizon, dimensions) of clamp(logp) - clamp(logp_old)). [N,K',H,D] -> [N,K'].
at::Tensor dppo_ratios(const at::Tensor& logp_NSHD, const at::Tensor& old_logp_NSHD, const DppoOptions& options);

/// Mean over samples and steps of max(-A_i r, -A_i clip(r, 1 - eps_i, 1 + eps_i)), A_i = normalised adv g_d^(K'-1-i).
/// Shapes: log-probabilities [N,K',H,D], adv [N] (normalised here: unbiased std, advantage_epsilon; as it is below two
/// samples). Grad: logp.
/// Source: irom-lab/dppo, arXiv:2409.00588.
at::Tensor dppo_loss(const at::Tensor& logp_NSHD, const at::Tensor& old_logp_NSHD, const at::Tensor& advantage_N,
                     const DppoOptions& options);

}  // namespace troupe::model
