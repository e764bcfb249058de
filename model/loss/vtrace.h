#pragma once

#include <ATen/core/Tensor.h>

namespace troupe::model {

/// Bounds and discounts of V-trace.
struct VtraceOptions {
  double gamma = 0.99;
  double lambda = 1.0;
  double rho_bar = 1.0, c_bar = 1.0;
};

struct VtraceTargets {
  at::Tensor values;      ///< vs, [S,B]: what the critic learns
  at::Tensor advantages;  ///< [S,B], with the importance weight inside
};

/// Importance-weighted value targets and advantages.
///     rho = min(rho_bar, pi/mu)   c = lambda min(c_bar, pi/mu)   g_s = gamma (1 - done_{s+1})
///     d_s = rho_s (r_s + g_s V_{s+1} - V_s)     vs_s = V_s + d_s + g_s c_s (vs_{s+1} - V_{s+1}),  vs_S = V_S
///     A_s = rho_s (r_s + g_s vs_{s+1} - V_s)
/// Shapes: rewards, log_ratio (log pi/mu, clamped to +-20) [S,B]; values, dones [S+1,B]. f32 or f64, by the rewards.
/// Keeps no graph.
/// Errors: throws c10::Error on shapes that do not fit. Source: arXiv:1802.01561 eq. 1.
VtraceTargets vtrace(const at::Tensor& rewards_SB, const at::Tensor& values_S1B, const at::Tensor& dones_S1B,
                     const at::Tensor& log_ratio_SB, const VtraceOptions& options);

}  // namespace troupe::model
