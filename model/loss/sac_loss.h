#pragma once

#include <ATen/core/Tensor.h>

#include "configs/algorithm_config.h"

namespace troupe::model {

// Losses of soft actor-critic (arXiv:1812.05905 eq. 5 to 7 and 18). Shape legend: N batch rows, Q critics. A chunk is
// one action. Sums and means are those of the inputs' dtype; means divide by N, so that the mean over equal
// micro-batches is the mean over the whole batch.

/// [N,Q] -> [N,1]. `subset` i64 [M], optional: the critics that count (REDQ); drawn without replacement by the caller.
at::Tensor aggregate_critics(const at::Tensor& values_NQ, CriticAggregation aggregation, const at::Tensor& subset);

/// y = r + continues (agg Q'(s',a') - alpha logp(a'|s')), detached. `continues` is the discount, 0 where a termination
/// cuts; truncations never do. backup_entropy false leaves the alpha term out.
/// Shapes: reward, continues, next_value, next_logp [N,1]; alpha scalar. Returns [N,1].
at::Tensor sac_target(const at::Tensor& reward, const at::Tensor& continues, const at::Tensor& next_value,
                      const at::Tensor& next_logp, const at::Tensor& alpha, bool backup_entropy);

/// Mean over critics and rows of (Q_i - y)^2. Grad: values.
at::Tensor sac_critic_loss(const at::Tensor& values_NQ, const at::Tensor& target_N1);

/// mean(alpha logp(a|s) - agg Q(s,a)); alpha is detached here. Grad: logp, value.
at::Tensor sac_actor_loss(const at::Tensor& logp_N1, const at::Tensor& value_N1, const at::Tensor& alpha);

/// alpha = exp(p), softplus(p), or p itself when fixed. Grad: p.
at::Tensor temperature(const at::Tensor& parameter, TemperatureKind kind);
/// The parameter that gives `alpha` at the start; alpha > 0 unless fixed.
double temperature_parameter(double alpha, TemperatureKind kind);

/// -alpha (mean(logp) + target_entropy), logp detached; what the temperature minimises. Grad: alpha.
at::Tensor sac_temperature_loss(const at::Tensor& alpha, const at::Tensor& logp_N1, double target_entropy);

}  // namespace troupe::model
