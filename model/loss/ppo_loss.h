#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

namespace troupe::model {

// Entries of the losses of proximal policy optimisation (arXiv:1707.06347), element by element; aggregation.h makes one
// number of them. Tensors broadcast against each other as in granularity.h. Arithmetic is that of the inputs: f32, or
// f64 in tests.

/// Where ratios are cut.
struct PpoClip {
  double low = 0.2, high = 0.2;
  bool reciprocal = false;                         ///< lower bound 1 / (1 + low) in place of 1 - low
  double dual = 0;                                 ///< c of the dual clip; 0: off
  double log_ratio_min = -20, log_ratio_max = 20;  ///< of logp - logp_old before exp; the gradient is zero outside
};

/// What the actor's loss is made of. All but `loss` are detached.
struct PpoEntries {
  at::Tensor loss;       ///< broadcast shape of logp and advantage
  at::Tensor log_ratio;  ///< clamped; 0 where masked
  at::Tensor ratio;      ///< 0 where masked
  at::Tensor clipped_ratio;
  at::Tensor is_clipped;       ///< bool: the clipped branch is the larger
  at::Tensor is_dual_clipped;  ///< bool
};

/// The clipped objective of one set of log-probabilities.
///     r = exp(clamp(logp - old_logp))     L = max(-adv r, -adv clip(r, 1 - low, 1 + high))
///     dual clip: L = min(L, c |adv|)
/// Shapes: logp, old_logp, advantage, mask broadcast; mask floating or bool. Grad: logp.
/// Source: arXiv:1707.06347 eq. 7; dual clip arXiv:1912.09729 eq. 5.
PpoEntries ppo_entries(const at::Tensor& logp, const at::Tensor& old_logp, const at::Tensor& advantage,
                       const at::Tensor& mask, const PpoClip& clip);

/// Log-probabilities of the policy one version before the trained one, interpolated between behaviour and trained
/// policy:
///     alpha = clamp((v_theta - 1 - v_b) / (v_theta - v_b), 0, 1) if v_theta > v_b and v_b >= 0, else 0
///     logp_prox = sg(logp_b + alpha (logp - logp_b))
/// Shapes: behaviour_version broadcasts against logp, integer or floating; trained_version is a scalar v_theta.
at::Tensor proximal_logp(const at::Tensor& logp, const at::Tensor& behaviour_logp, const at::Tensor& behaviour_version,
                         const at::Tensor& trained_version);

/// Entries of the decoupled loss (AReaL, arXiv:2505.24298).
struct DecoupledEntries {
  PpoEntries ppo;      ///< against the proximal policy; loss is already times the behaviour weight, and 0 where cut
  at::Tensor weight;   ///< exp(logp_prox - logp_b), detached
  at::Tensor is_kept;  ///< bool, shape of the log-probabilities: valid, and weight at most `weight_max`
  at::Tensor behaviour_log_ratio;  ///< logp_prox - logp_b, detached; 0 where cut
};

/// PPO against the proximal policy, weighed by how likely the behaviour policy's sample is under it; entries with a
/// weight above weight_max (none: infinite) are cut.
DecoupledEntries decoupled_entries(const at::Tensor& logp, const at::Tensor& behaviour_logp, const at::Tensor& proximal,
                                   const at::Tensor& advantage, const at::Tensor& mask, const PpoClip& clip,
                                   std::optional<double> weight_max);

/// l(e) = e^2 / 2 where |e| < delta, delta (|e| - delta / 2) elsewhere.
at::Tensor huber(const at::Tensor& error, double delta);

/// How a value's error is judged.
struct ValueLossOptions {
  double clip = 0.2;     ///< c_v; 0: no clipped branch
  bool is_huber = true;  ///< false: e^2 / 2
  double huber_delta = 10;
};

/// max(l(R - V), l(R - V_clip)), V_clip = V_old + clamp(V - V_old, -c_v, c_v).
/// Shapes: all three the same. Grad: value.
at::Tensor value_entries(const at::Tensor& value, const at::Tensor& old_value, const at::Tensor& returns,
                         const ValueLossOptions& options);

}  // namespace troupe::model
